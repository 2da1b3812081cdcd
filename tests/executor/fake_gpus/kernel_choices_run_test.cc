// Kernels are chosen when a run starts, and kept for later runs: the whole program with the kernels
// of GPUs on the fakes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/executor/fake_gpus/gpu_run.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHeuristic = "cublasLtMatmulAlgoGetHeuristic";
constexpr const char* kFile = "kernels_fake_cuda-13000_cublaslt-[0-9]+_cudnn-0.json";

class KernelChoicesOfRuns : public testing::Test {
 protected:
  struct Ended {
    Outcome outcome;
    std::map<std::string, int> calls;
    std::vector<std::string> losses;
  };
  /// Trains a GPT-2 in bf16 for four steps. \param folder  for choices
  Ended run(int ranks, const std::string& folder, std::vector<std::string> words = {}) const {
    Plan plan = small_plan("gpt2", DType::bf16, ranks > 1 ? 2 : 0, ranks);
    plan.job.sequence_length = 8;
    words.insert(words.end(), {"--steps", "4", "--timeout", "60", "--metrics", path("steps")});
    Ended ended;
    ended.outcome =
        run_on_gpus(scratch_.write(plan), words,
                    {"SHARDWISE_KERNEL_CHOICES=" + folder, "FAKE_GPU_CALLS=" + path("calls")});
    EXPECT_EQ(ended.outcome.exit_code, 0) << ended.outcome.err;
    EXPECT_EQ(ended.outcome.err, "");
    std::ifstream lines(path("calls"));
    std::string call;
    for (int count = 0; lines >> call >> count;) ended.calls[call] = count;
    ended.losses = losses_of(path("steps"));
    EXPECT_EQ(ended.losses.size(), 4U);
    return ended;
  }
  void SetUp() override {
    if (run(1, "off").calls["cublasLtMatmul"] == 0) GTEST_SKIP() << "there is no cuBLASLt here";
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }
  /// The one file of a folder.
  static std::string file_in(const std::string& folder) {
    std::vector<std::string> found;
    for (const auto& each : std::filesystem::directory_iterator(folder)) {
      found.push_back(each.path().string());
    }
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? "" : found.front();
  }

 private:
  Scratch scratch_;
};

TEST_F(KernelChoicesOfRuns, AreTimedInTheFirstAndTakenByTheSecond) {
  for (const int ranks : {1, 2}) {
    const std::string folder = path(fmt::format("choices of {}", ranks));
    Ended first = run(ranks, folder);
    EXPECT_THAT(first.outcome.out,
                ContainsRegex(fmt::format("kernels of ([0-9]+) shapes: [1-9][0-9]* timed in "
                                          "[0-9.]+ s, 0 as kept; kept in {}/{}\n",
                                          folder, kFile)));
    EXPECT_GT(first.calls[kHeuristic], 0);
    EXPECT_GT(first.calls["cudaEventElapsedTime"], 0);
    const std::string kept = bytes_of_file(file_in(folder));

    Ended second = run(ranks, folder);
    EXPECT_THAT(second.outcome.out,
                ContainsRegex(fmt::format("kernels of [0-9]+ shapes: 0 timed in [0-9.]+ s, "
                                          "[1-9][0-9]* as kept in {}/{}\n",
                                          folder, kFile)));
    EXPECT_EQ(second.calls[kHeuristic], 0);
    EXPECT_EQ(second.losses, first.losses);
    EXPECT_EQ(bytes_of_file(file_in(folder)), kept);
  }
}

// The ranks share a GPU: rank 0 times, and both have what it chose.
TEST_F(KernelChoicesOfRuns, AreTimedByOneRankForAll) {
  Ended one = run(1, "off");
  Ended two = run(2, "off", {"--share-gpu"});
  EXPECT_THAT(two.outcome.out,
              ContainsRegex("[1-9][0-9]* timed in [0-9.]+ s, 0 as kept; not kept"));
  EXPECT_GT(one.calls[kHeuristic], 0);
  EXPECT_EQ(two.calls[kHeuristic], one.calls[kHeuristic]);
}

TEST_F(KernelChoicesOfRuns, OfABrokenFileAreIgnoredWithALineAndTimedAnew) {
  const std::string folder = path("choices");
  run(1, folder);
  const std::string file = file_in(folder);
  const std::string good = bytes_of_file(file);
  std::ofstream(file) << good.substr(0, good.size() / 2);
  Ended torn = run(1, folder);
  EXPECT_THAT(torn.outcome.out,
              ContainsRegex("kept kernel choices are ignored: " + file + "[^\n]*\n"));
  EXPECT_THAT(torn.outcome.out, HasSubstr(" timed in "));
  EXPECT_GT(torn.calls[kHeuristic], 0);
  Ended after = run(1, folder);
  EXPECT_THAT(after.outcome.out, Not(HasSubstr("ignored")));
  EXPECT_EQ(after.calls[kHeuristic], 0);
}

// A file may say anything of algorithms: cuBLASLt is asked before one runs.
TEST_F(KernelChoicesOfRuns, ThatCublasLtDoesNotTakeAreTimedAnew) {
  const std::string folder = path("choices");
  run(1, folder);
  const std::string file = file_in(folder);
  std::string text = bytes_of_file(file);
  constexpr std::string_view kKey = "\"algorithm\": \"";
  for (std::size_t at = text.find(kKey); at != std::string::npos; at = text.find(kKey, at + 1)) {
    text.replace(at + kKey.size(), 16, "00000000deadbeef");
  }
  std::ofstream(file) << text;
  Ended hostile = run(1, folder);
  EXPECT_THAT(hostile.outcome.out, ContainsRegex("[1-9][0-9]* timed in [0-9.]+ s, 0 as kept"));
}

TEST_F(KernelChoicesOfRuns, AreNotKeptWhereTheFolderCannotBeWritten) {
  const std::string file = path("a file");
  std::ofstream(file) << "no folder";
  EXPECT_THAT(
      run(1, file).outcome.out,
      ContainsRegex("[1-9][0-9]* timed in [0-9.]+ s, 0 as kept; not kept: " + file + "[^\n]*\n"));
}

}  // namespace
}  // namespace shardwise::exec::test
