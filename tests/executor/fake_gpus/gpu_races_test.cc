// Under the thread sanitizer, streams, their events and the threads of kernels of whole runs:
// a race of any of them ends the run. Without it, that these runs end well. Of one rank the last
// two steps are a graph's launches.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/executor/fake_gpus/gpu_run.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

void expect_no_race(const std::string& model, int zero_stage, int ranks,
                    const std::vector<std::string>& words) {
  const Scratch scratch;
  Plan plan = small_plan(model, DType::bf16, zero_stage, ranks);
  plan.job.sequence_length = 8;
  std::vector<std::string> all = {"--steps", "5", "--timeout", "300"};
  all.insert(all.end(), words.begin(), words.end());
  const shardwise::test::Outcome run = run_on_gpus(scratch.write(plan), all);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
}

TEST(KernelsOfGpus, HaveNoRaceInAWholeRunByNccl) { expect_no_race("llama", 3, 2, {}); }

TEST(KernelsOfGpus, HaveNoRaceInAWholeRunOfOneRank) { expect_no_race("llama", 0, 1, {}); }

TEST(KernelsOfGpus, HaveNoRaceInAWholeRunOfRanksOnOneGpu) {
  expect_no_race("gpt2", 1, 2, {"--share-gpu"});
}

}  // namespace
}  // namespace shardwise::exec::test
