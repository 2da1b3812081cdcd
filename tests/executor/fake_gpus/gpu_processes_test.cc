// A process a GPU: shardwise-run starts one for each rank by itself where NCCL moves their tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "planner/spec/report/report_json.h"
#include "tests/executor/fake_gpus/gpu_run.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using testing::HasSubstr;

constexpr int kSteps = 8;
// The first step has a program of its own. Two of the other are issued, the next is captured.
constexpr int kGraphs = kSteps - 1 - 2;

/// Runs with the CPU's kernels.
class GpuProcesses : public testing::Test {
 protected:
  Outcome run(const std::string& plan, const std::string& name,
              const std::vector<std::string>& words,
              std::vector<std::string> environment = {}) const {
    std::vector<std::string> all = {
        "--steps", std::to_string(kSteps), "--metrics", metrics(name), "--timeout",
        "60",      "--learning-rate",      "0.01"};
    all.insert(all.end(), words.begin(), words.end());
    environment.push_back("FAKE_GPU_KERNELS=0");
    environment.push_back("FAKE_GPU_CALLS=" + calls_);
    return run_on_gpus(plan, all, environment);
  }
  /// The same as processes.
  Outcome run_processes(const std::string& plan, const std::string& name,
                        const std::vector<std::string>& words,
                        std::vector<std::string> environment = {}) const {
    const std::string folder = scratch_.path(name);
    std::filesystem::create_directory(folder);
    environment.push_back("FAKE_NCCL_FOLDER=" + folder);
    return run(plan, name, words, environment);
  }
  std::string metrics(const std::string& name) const { return scratch_.path(name + ".jsonl"); }

  std::map<std::string, int> calls_of(int rank) const {
    std::map<std::string, int> calls;
    std::ifstream lines(calls_ + "." + std::to_string(rank));
    std::string call;
    for (int count = 0; lines >> call >> count;) calls[call] = count;
    return calls;
  }

  Scratch scratch_;
  std::string calls_ = scratch_.path("calls");
};

TEST_F(GpuProcesses, TrainAsThreadsDoWithStepsThatAreGraphs) {
  for (const int zero_stage : {1, 3}) {
    const std::string plan = scratch_.write(small_plan("llama", DType::fp32, zero_stage, 2));
    const Outcome threads = run(plan, "threads", {});
    ASSERT_EQ(threads.exit_code, 0) << threads.err;
    EXPECT_THAT(threads.out, HasSubstr("steps are no CUDA graph: ranks of one process"));
    const std::string name = "stage" + std::to_string(zero_stage);
    const Outcome processes = run_processes(plan, name, {});
    ASSERT_EQ(processes.exit_code, 0) << processes.out << processes.err;
    EXPECT_EQ(processes.err, "");
    EXPECT_THAT(processes.out, HasSubstr("steady steps are launched as one CUDA graph\n"));
    EXPECT_EQ(losses_of(metrics(name)), losses_of(metrics("threads")));
    for (const int rank : {0, 1}) {
      std::map<std::string, int> calls = calls_of(rank);
      EXPECT_EQ(calls["cudaGraphLaunch"], kGraphs) << rank;
      EXPECT_GT(calls["ncclAllGather"], 0) << rank;
    }
  }
}

TEST_F(GpuProcesses, AreRecordedByRankZero) {
  const std::string plan = scratch_.write(small_plan("gpt2", DType::fp32, 2, 3));
  const std::string report = scratch_.path("report.json");
  const Outcome done = run_processes(plan, "recorded", {"--report", report}, {"FAKE_GPUS=4"});
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("3 x fake\n"));
  EXPECT_THAT(done.out, HasSubstr("rank 2 on "));
  EXPECT_TRUE(read_report(report));
}

// As threads do: what is wrong is known before a process is started.
TEST_F(GpuProcesses, AreNotStartedWhereThereAreTooFewGpus) {
  const std::string plan = scratch_.write(small_plan("gpt2", DType::fp32, 2, 3));
  const Outcome refused = run_processes(plan, "few", {});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--ranks: 3 ranks on this host, which has 2 GPUs"));
}

TEST_F(GpuProcesses, EndWithOneMessageWhereACallFailsInOneOfThem) {
  const std::string plan = scratch_.write(small_plan("gpt2", DType::fp32, 3, 2));
  const Outcome failed = run_processes(plan, "failed", {}, {"FAKE_GPU_FAIL=ncclAllGather 3 1"});
  EXPECT_EQ(failed.exit_code, 3) << failed.err;
  EXPECT_THAT(failed.err, testing::ContainsRegex("^shardwise-run: rank [01].*ncclAllGather"));
  EXPECT_EQ(failed.err.find("shardwise-run: ", 1), std::string::npos) << failed.err;
}

}  // namespace
}  // namespace shardwise::exec::test
