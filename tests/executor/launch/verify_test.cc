// shardwise-run verify, as people start it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/spec/json/reader.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::shardwise_run;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Verify, ReadsACheckpointsFolderWithoutItsPlan) {
  const Scratch scratch;
  const std::string folder = scratch.path("checkpoints");
  const Outcome trained =
      shardwise_run({scratch.write(tiny_plan("shardwise", 3, 2, 1)), "--data", kTrainingText,
                     "--steps", "2", "--checkpoint-dir", folder, "--checkpoint-every", "1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome good = shardwise_run({"verify", folder});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out,
              ContainsRegex("^step-00000001  good +run [0-9a-f]{8}, [0-9]+ tensors in 2 files, .*\n"
                            "step-00000002  good .*\n.*/checkpoints: 2 good\n$"));
  EXPECT_THAT(good.err, IsEmpty());

  const std::string file = folder + "/step-00000002/rank-00000.safetensors";
  std::string bytes = bytes_of_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch.write_bytes("checkpoints/step-00000002/rank-00000.safetensors", bytes);
  const Outcome damaged = shardwise_run({"verify", folder});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.out,
              AllOf(HasSubstr("step-00000001  good "),
                    HasSubstr("step-00000002  damaged     " + file + ": /second_moment/"),
                    HasSubstr(": 1 good, 1 damaged\n")));
  // A run says the same of it.
  const Outcome resumed =
      shardwise_run({scratch.write(tiny_plan("shardwise", 3, 2, 1)), "--data", kTrainingText,
                     "--steps", "3", "--checkpoint-dir", folder, "--resume", "latest"});
  const std::size_t at = damaged.out.find(file);
  EXPECT_THAT(resumed.err, HasSubstr(damaged.out.substr(at, damaged.out.find('\n', at) - at)));

  const Outcome json = shardwise_run({"verify", folder + "/step-00000002", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  const Result<JsonValue> root = parse_json(json.out, "stdout");
  ASSERT_TRUE(root) << to_string(root.problems());
  EXPECT_THAT(json.out, AllOf(HasSubstr(R"("schema": "shardwise.verification/1")"),
                              HasSubstr(R"("all_good": false)"), HasSubstr(R"("state": "damaged")"),
                              HasSubstr(R"("file": ")" + file + "\""),
                              HasSubstr(R"("path": "/second_moment/)")));
}

TEST(Verify, RefusesAFolderWithoutCheckpoints) {
  const Scratch scratch;
  const auto refused = [](const std::string& path) {
    const Outcome said = shardwise_run({"verify", path});
    EXPECT_EQ(said.exit_code, 2) << path;
    EXPECT_THAT(said.out, IsEmpty());
    return said.err;
  };
  EXPECT_THAT(refused(scratch.folder()), HasSubstr("has no complete checkpoint\n"));
  EXPECT_THAT(refused(scratch.path("none")), HasSubstr("none is not there"));
  EXPECT_THAT(refused(scratch.write_bytes("file", "")), HasSubstr("file is a file\n"));
  EXPECT_THAT(shardwise_run({"verify"}).err, HasSubstr("folder is missing"));
}

}  // namespace
}  // namespace shardwise::exec::test
