// shardwise-run and its library of GPUs as they are built and installed, on a machine without a
// GPU: every symbol and the version agree, or the library would be refused before it looks for one.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/gpu_plugin.h"
#include "planner/spec/catalogue.h"
#include "planner/spec/cluster_reader.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

namespace files = std::filesystem;

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
  Outcome train(const std::string& cluster, std::vector<std::string> words = {}) const {
    Plan plan = tiny_plan("shardwise", 0, 1, 1);
    plan.cluster = *with_gpus(*find_cluster(cluster), 1);
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
    EXPECT_THAT(trained.out, HasSubstr(std::string("trains on the CPU: ") + kNoDriver)) << folder;
    files::remove(plugin(folder));
  }
}

TEST_F(GpuPluginFile, IsNamedWithBothFoldersWhereItIsMissing) {
  const Outcome refused = train("dgx-h100", {"--device", "cuda"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(kGpuPluginFile), HasSubstr(scratch().path("bin")),
                                 HasSubstr(scratch().path("lib"))));
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

}  // namespace
}  // namespace shardwise::exec::test
