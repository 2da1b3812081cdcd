#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/calibration/collective_fit.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/collective_reader.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

/// A table of collectives as the model of dgx-h100 has them, all 10 % slower.
std::string write_table() {
  const ClusterSpec cluster = *find_cluster("dgx-h100");
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = testing::TempDir() + "/" + test + ".csv";
  std::ofstream file(path);
  file << "gpu,op,gpus,bytes,time_us\n";
  for (const char* op : {"all_gather", "all_reduce"}) {
    for (const std::int32_t ranks : {2, 8}) {
      for (int bits = 10; bits <= 30; ++bits) {
        const Bytes bytes(std::int64_t{1} << bits);
        const Seconds time = collective_time(cluster, *collective_from_name(op), bytes,
                                             packed_group(cluster, ranks));
        file << "h100," << op << "," << ranks << "," << bytes.value() << "," << 1.1e6 * time.value()
             << "\n";
      }
    }
  }
  return path;
}

TEST(FitCollectives, WritesACurveThatTheReaderTakesAndPrintsItsErrors) {
  const std::string table = write_table();
  const std::string written = testing::TempDir() + "/curve.json";
  std::filesystem::remove(written);
  const Outcome outcome =
      shardwise({"fit", "--collectives", table, "--cluster", "dgx-h100", "--tier", "nvlink",
                 "--only", "gpu=h100", "--name", "mine", "--source", "a test", "-o", written});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("all_reduce, 8 ranks"));
  const Result<CollectiveCurve> curve = find_collectives(written);
  ASSERT_TRUE(curve.ok()) << to_string(curve.problems());
  EXPECT_EQ(curve->name, "mine");
  EXPECT_TRUE(curve->fit.measured);
  EXPECT_EQ(curve->fit.fitted_on, "a test");
  EXPECT_EQ(curve->fit.points, 84);
  EXPECT_LT(curve->fit.median_error, 0.03);
}

TEST(FitCollectives, ChecksWithoutFitting) {
  const Outcome outcome = shardwise({"fit", "--collectives", write_table(), "--cluster", "dgx-h100",
                                     "--tier", "nvlink", "--check"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("9.1 %"));  // 1 / 1.1 - 1
}

TEST(FitCollectives, RefusesUnknownTiersCoefficientsAndEmptySelections) {
  const std::string table = write_table();
  const std::vector<std::string> base = {"fit", "--collectives", table, "--cluster", "dgx-h100"};
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more);
    const Outcome outcome = shardwise(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_EQ(with({"--tier", "nvlnk"}),
            "command line: --tier: dgx-h100 has no tier nvlnk\n"
            "    use nvlink, infiniband\n"
            "1 problem, nothing was run\n");
  EXPECT_EQ(with({"--tier", "nvlink", "--fix", "speed"}),
            "command line: --fix: speed is not a coefficient\n"
            "1 problem, nothing was run\n");
  EXPECT_EQ(with({"--tier", "nvlink", "--only", "gpu=a100"}),
            "command line: --only: no row matches\n"
            "1 problem, nothing was run\n");
  EXPECT_EQ(with({"--tier", "nvlink", "--only", "gpu"}),
            "command line: --only: gpu has no =\n"
            "    for example gpu=h100_sxm\n"
            "1 problem, nothing was run\n");
}

}  // namespace
}  // namespace shardwise::cli
