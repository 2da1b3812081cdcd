// shardwise-run and its library of GPUs as they are built and installed, on a machine without a
// GPU: every symbol and the version agree, or the library would be refused before it looks for one.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/gpu_plugin.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/report/report_json.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

namespace files = std::filesystem;

constexpr const char* kFallback =
    "the plan is for GPUs and trains on the CPU, where times mean nothing: ";

constexpr const char* kNoDriver = "there is no driver of NVIDIA's (libcuda.so.1) on this machine";

class GpuPluginFile : public testing::Test {
 protected:
  void SetUp() override {
    if (::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) GTEST_SKIP() << "this machine has a driver";
    files::create_directories(scratch_.path("bin"));
    files::create_directories(scratch_.path("lib"));
    files::copy_file(built("shardwise-run"), scratch_.path("bin/shardwise-run"));
  }
  /// \param folder  "bin" or "lib"
  void install(const std::string& folder) const {
    files::copy_file(built(kGpuPluginFile), plugin(folder));
  }
  std::string plugin(const std::string& folder) const {
    return scratch_.path(folder + "/" + kGpuPluginFile);
  }
  /// Trains a step of a plan for a cluster of the catalogue.
  Outcome train(const std::string& cluster, std::vector<std::string> words = {},
                std::int32_t micro_batch_size = 1) const {
    Plan plan = tiny_plan("shardwise", 0, 1, 1);
    plan.cluster = *with_gpus(*find_cluster(cluster), 1);
    plan.layout.micro_batch_size = micro_batch_size;
    plan.job.global_batch_size = micro_batch_size;
    words.insert(words.begin(), {"train", scratch_.write(plan), "--steps", "1"});
    return shardwise::test::run_program(scratch_.path("bin/shardwise-run"), words);
  }
  const Scratch& scratch() const { return scratch_; }

 private:
  Scratch scratch_;
};

TEST_F(GpuPluginFile, OpensBesideTheProgramAndInLibAndNamesTheDriverThatIsMissing) {
  for (const char* const folder : {"bin", "lib"}) {
    install(folder);
    const Outcome refused = train("dgx-h100", {"--device", "cuda"});
    EXPECT_EQ(refused.exit_code, 3) << folder;
    EXPECT_EQ(refused.err, std::string("shardwise-run: ") + kNoDriver + "\n") << folder;
    const Outcome trained = train("dgx-h100");
    EXPECT_EQ(trained.exit_code, 0) << folder << trained.err;
    EXPECT_THAT(trained.out, HasSubstr(kFallback + std::string(kNoDriver))) << folder;
    files::remove(plugin(folder));
  }
}

TEST_F(GpuPluginFile, IsNamedWithBothFoldersWhereItIsMissing) {
  const Outcome refused = train("dgx-h100", {"--device", "cuda"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(kGpuPluginFile), HasSubstr(scratch().path("bin")),
                                 HasSubstr(scratch().path("lib"))));
}

// Where a plan for GPUs trains on the CPU its files say so: a batch job may have been meant for
// GPUs.
TEST_F(GpuPluginFile, IsMissedInTheReportOfAPlanThatTrainsOnTheCpu) {
  const std::string file = scratch().path("report.json");
  const Outcome trained = train("dgx-h100", {"--report", file, "--share-gpu", "--no-graph"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, AllOf(HasSubstr("--share-gpu is not used: there is no GPU\n"),
                                 HasSubstr("--no-graph is not used: there is no GPU\n")));
  const Result<StepReport> report = read_report(file);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->assumptions.size(), 2U);
  EXPECT_EQ(report->assumptions.front().id, "device.cpu");
  EXPECT_EQ(report->assumptions.back().id, "kernels.products");
  EXPECT_THAT(report->assumptions.front().text, HasSubstr(kFallback));
}

TEST_F(GpuPluginFile, IsMissedBeforeTheHostsMemoryEnds) {
  constexpr std::int32_t kMore = 10'000'000;  // sequences than a host has memory for
  const Outcome refused = train("dgx-h100", {}, kMore);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("/layout: needs "), HasSubstr(" are available"),
                                 HasSubstr(kFallback)));
}

TEST_F(GpuPluginFile, ThatIsCutIsNamedAndOnlyOpenedForPlansOfGpus) {
  install("lib");
  files::resize_file(plugin("lib"), files::file_size(plugin("lib")) / 2);
  const Outcome refused = train("dgx-h100");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("cannot open " + plugin("lib") + ": it lacks its end"));
  const Outcome trained = train("laptop");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

// Defect N2: what a stranger adds to a folder like /tmp, or to a lib beside root's bin.
TEST_F(GpuPluginFile, ThatOthersMayHavePutThereIsNotOpened) {
  using files::perms;
  for (const char* const folder : {"bin", "lib"}) {
    install(folder);
    files::permissions(scratch().path(folder), perms::all | perms::sticky_bit);
    const std::string refusal = plugin(folder) + " is not trusted: its folder may be written by";
    const Outcome refused = train("dgx-h100", {"--device", "cuda"});
    EXPECT_EQ(refused.exit_code, 3) << folder;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("shardwise-run: " + refusal), HasSubstr("mode 1777")));
    const Outcome version =
        shardwise::test::run_program(scratch().path("bin/shardwise-run"), {"--version"});
    EXPECT_EQ(version.exit_code, 0) << folder;
    EXPECT_THAT(version.out, testing::AnyOf(HasSubstr("GPUs cannot be used: " + refusal),
                                            HasSubstr("no GPUs: " + refusal)));
    EXPECT_EQ(train("laptop").exit_code, 0) << folder;
    files::remove(plugin(folder));
    files::permissions(scratch().path(folder), perms::owner_all);
  }
}

TEST_F(GpuPluginFile, OfAnotherUserIsPassedOverForTheOneInLib) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  install("bin");
  ASSERT_EQ(::chown(plugin("bin").c_str(), 65534, 65534), 0);
  const Outcome refused = train("dgx-h100", {"--device", "cuda"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("it belongs to another user"));
  install("lib");
  EXPECT_EQ(train("dgx-h100", {"--device", "cuda"}).err,
            std::string("shardwise-run: ") + kNoDriver + "\n");
}

}  // namespace
}  // namespace shardwise::exec::test
