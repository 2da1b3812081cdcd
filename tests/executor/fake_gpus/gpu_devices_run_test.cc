// What whole runs on fake GPUs say of how ranks use them, and when they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tests/executor/fake_gpus/gpu_run.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using testing::HasSubstr;

// NCCL's own threads make communicators: the host asks until --timeout is over.
TEST(GpuRun, EndsWithinItsTimeoutWhereACommunicatorIsNeverMade) {
  const Scratch scratch;
  const std::string plan = scratch.write(small_plan("gpt2", DType::fp32, 1, 2));
  for (const std::string call : {"ncclCommInitRankConfig", "ncclCommSplit"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome run = run_on_gpus(plan, {"--steps", "1", "--timeout", "2"},
                                    {"FAKE_NCCL_ENDLESS=" + call, "FAKE_GPU_KERNELS=0"});
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(run.exit_code, 3) << run.err;
    EXPECT_THAT(run.err, testing::ContainsRegex("^shardwise-run: rank [01] waited 2 s in " + call +
                                                " of the communicator of all 2 ranks\n"));
    EXPECT_EQ(run.err.find("shardwise-run: ", 1), std::string::npos) << run.err;
    EXPECT_LT(spent.count(), 60) << "seconds: NCCL's own limit was in force";
  }
}

TEST(GpuRun, SaysInEveryFileThatTimingsOfASharedGpuMeanNothing) {
  const Scratch scratch;
  const std::string plan = scratch.write(small_plan("gpt2", DType::fp32, 1, 2));
  const auto train = [&](const std::string& name, std::vector<std::string> words) {
    for (const char* const file : {"report", "trace", "metrics"}) {
      words.push_back(std::string("--") + file);
      words.push_back(scratch.path(name + "." + file));
    }
    words.insert(words.end(), {"--steps", "2"});
    const Outcome run = run_on_gpus(plan, words, {"FAKE_GPU_KERNELS=0"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  const char* const said = "ranks share one GPU and move tensors by copies: timings mean nothing";
  EXPECT_THAT(train("shared", {"--share-gpu"}), HasSubstr(said));
  EXPECT_THAT(train("own", {}), testing::Not(HasSubstr("mean nothing")));
  for (const std::string file : {"report", "trace", "metrics"}) {
    EXPECT_THAT(shardwise::test::bytes_of_file(scratch.path("shared." + file)), HasSubstr(said))
        << file;
    EXPECT_THAT(shardwise::test::bytes_of_file(scratch.path("own." + file)),
                testing::Not(HasSubstr("mean nothing")))
        << file;
  }
  std::ifstream metrics(scratch.path("shared.metrics"));
  std::string first;
  std::getline(metrics, first);
  EXPECT_EQ(first, std::string(R"({"schema":"shardwise.metrics/1","note":")") + said + "\"}");
}

}  // namespace
}  // namespace shardwise::exec::test
