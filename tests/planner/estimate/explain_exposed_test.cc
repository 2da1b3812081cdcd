// Why communication is not hidden, collective by collective.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

StepReport explained_step(const char* engine, const char* cluster, const Layout& layout,
                          const JobSpec& job = {}) {
  const ClusterSpec machines = *with_gpus(*find_cluster(cluster), layout.world());
  return estimate(test::llama_3_1_8b(), machines, job, *find_engine(engine), layout,
                  Detail::explained);
}

std::string reason(const StepReport& report, const std::string& subject) {
  const auto found = std::ranges::find(report.explanations, subject, &Explanation::subject);
  return found == report.explanations.end() ? "" : found->formula;
}

// One sequence of 512 tokens a GPU on machines joined by 100 Gb/s: no block's compute is as long as
// its gather.
TEST(ExposedExplanation, SaysThatAGatherOutlastsThePassBesideIt) {
  JobSpec job;
  job.sequence_length = 512;
  const StepReport report =
      explained_step("fsdp2", "aws-g5", {.dp_shard = 16, .zero_stage = 3}, job);
  for (const char* subject : {"exposed.dp.gather_forward", "exposed.dp.gather_backward"}) {
    EXPECT_THAT(reason(report, subject), StartsWith("exposed because it outlasts the pass"));
  }
}

TEST(ExposedExplanation, SaysWhatHidesAGather) {
  JobSpec job;
  job.sequence_length = 16384;
  const StepReport report =
      explained_step("fsdp2", "dgx-h100", {.dp_shard = 8, .zero_stage = 3}, job);
  EXPECT_THAT(reason(report, "exposed.dp.gather_forward"), StartsWith("hidden: "));
  EXPECT_THAT(reason(report, "exposed.dp.reduce"), StartsWith("hidden: "));
  EXPECT_THAT(
      reason(explained_step("fsdp2", "dgx-h100",
                            {.dp_shard = 8, .zero_stage = 3, .reshard_after_forward = 0}, job),
             "exposed.dp.gather_backward"),
      HasSubstr("stay gathered"));
}

TEST(ExposedExplanation, NamesTheFlagThatWouldHideIt) {
  Layout layout = {
      .dp_shard = 8, .zero_stage = 1, .overlap_grad_reduce = false, .overlap_param_gather = false};
  const StepReport report = explained_step("megatron_ddp", "dgx-h100", layout);
  EXPECT_THAT(reason(report, "exposed.dp.reduce"), HasSubstr("--overlap-grad-reduce"));
  EXPECT_THAT(reason(report, "exposed.dp.gather"), HasSubstr("--overlap-param-gather"));
  EXPECT_THAT(reason(report, "exposed.tp"), IsEmpty());
  layout = {.tp = 2, .pp = 2, .dp_shard = 2, .zero_stage = 1, .sequence_parallel = true};
  const StepReport parted = explained_step("megatron_ddp", "dgx-h100", layout);
  EXPECT_THAT(reason(parted, "exposed.tp"), HasSubstr("--tp-overlap"));
  EXPECT_THAT(reason(parted, "exposed.pp"), StartsWith("exposed because "));
}

// What is on top of the states, phase by phase, adds up to what nvidia-smi shows.
TEST(ExposedExplanation, SaysWhatIsAboveTheStatesInEveryPhase) {
  const StepReport report = explained_step("fsdp2", "dgx-h100", {.dp_shard = 8, .zero_stage = 3});
  for (const std::string_view phase : kMemoryPhaseNames) {
    const std::string formula = reason(report, std::string(phase) + ".above_states");
    EXPECT_THAT(formula, StartsWith("states"));
    if (phase == "steady_forward_backward") {
      EXPECT_THAT(formula, HasSubstr("gathered_weights (whole weights of the units in use)"));
    }
  }
}

}  // namespace
}  // namespace shardwise
