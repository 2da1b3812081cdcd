// Which steps of a run are graphs, which are recorded, and what the report has of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::Not;

/// What a run of twelve steps printed, and how often it launched graphs and began to time.
struct Trained {
  Outcome outcome;
  std::map<std::string, int> calls;
};

Trained train(const Scratch& scratch, std::vector<std::string> words, int ranks = 1) {
  const std::string plan = scratch.write(small_plan("llama", DType::fp32, 3, ranks));
  const std::string calls = scratch.path("calls");
  words.insert(words.end(), {"--steps", "12", "--timeout", "60"});
  Trained trained;
  trained.outcome = run_on_gpus(plan, words, {"FAKE_GPU_KERNELS=0", "FAKE_GPU_CALLS=" + calls});
  std::ifstream lines(calls);
  std::string call;
  for (int count = 0; lines >> call >> count;) trained.calls[call] = count;
  EXPECT_EQ(trained.outcome.exit_code, 0) << trained.outcome.err;
  return trained;
}

// The first step has a program of its own. Two steps of the other program are issued, the next is
// captured.
TEST(StepsOfGpus, AreGraphsWhereNothingIsRecorded) {
  const Scratch scratch;
  Trained run = train(scratch, {});
  EXPECT_EQ(run.calls["cudaGraphLaunch"], 12 - 1 - 2);
  EXPECT_EQ(run.calls["cudaEventElapsedTime"], 0);
  EXPECT_THAT(run.outcome.out, HasSubstr("steady steps are launched as one CUDA graph\n"));
}

TEST(StepsOfGpus, AreIssuedOneByOneWhereNoGraphIsAskedFor) {
  const Scratch scratch;
  Trained run = train(scratch, {"--no-graph"});
  EXPECT_EQ(run.calls["cudaGraphLaunch"], 0);
  EXPECT_THAT(run.outcome.out, HasSubstr("steps are no CUDA graph: --no-graph\n"));
}

TEST(StepsOfGpus, AreNoGraphsWhereRanksOfOneProcessMoveTensorsByNccl) {
  const Scratch scratch;
  Trained run = train(scratch, {}, 2);
  EXPECT_EQ(run.calls["cudaGraphLaunch"], 0);
  EXPECT_THAT(run.outcome.out, HasSubstr("steps are no CUDA graph: ranks of one process move "
                                         "tensors by NCCL, whose graphs may wait for one another; "
                                         "run them as processes"));
}

TEST(StepsOfGpus, AreRecordedAtTheEndOfARunWithAReport) {
  const Scratch scratch;
  const std::string file = scratch.path("report.json");
  Trained run = train(scratch, {"--report", file});
  EXPECT_EQ(run.calls["cudaGraphLaunch"], 12 - 1 - 2 - 3);
  EXPECT_GT(run.calls["cudaEventElapsedTime"], 0);
  const Result<StepReport> report = read_report(file);
  ASSERT_TRUE(report);
  EXPECT_GT(report->step_time, Seconds(0));
  EXPECT_GT(report->recorded_step_time, Seconds(0));
  EXPECT_NEAR(report->time.total() / report->step_time, 1, 1e-9);
  ASSERT_TRUE(report->timeline);
  EXPECT_FALSE(report->timeline->operations.empty());
}

TEST(StepsOfCpus, AreAllRecorded) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 3, 2, 1));
  const std::string file = scratch.path("report.json");
  const Outcome run =
      shardwise::test::shardwise_run({"train", plan, "--steps", "4", "--report", file});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("graph")));
  const Result<StepReport> report = read_report(file);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->recorded_step_time, Seconds(0));
}

}  // namespace
}  // namespace shardwise::exec::test
