#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/simulate_text.h"
#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/report_json.h"
#include "simulator/simulate.h"
#include "tests/cli/command.h"
#include "tests/support/models.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

TEST(Simulate, SaysWhenATimelineDoesNotFitWhoseLedgerDoes) {
  Plan plan;
  plan.model = test::gpt(12, 768, 12, 50304);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 1);
  plan.engine = *find_engine("megatron_ddp");
  plan.job.global_batch_size = 8;
  StepReport report = sim::simulate(plan, {}).report;
  ASSERT_EQ(report.verdict.fit, Fit::fits);
  EXPECT_EQ(timeline_misfit_text(report, false), "");
  report.timeline->stages[0].memory.back().allocated = Bytes(std::int64_t{385} << 30);
  EXPECT_THAT(timeline_misfit_text(report, false), HasSubstr("Does not fit: 386 GiB of"));
  EXPECT_THAT(timeline_misfit_text(report, false), HasSubstr("on stage 0 of the timeline"));
  report.verdict.fit = Fit::does_not_fit;
  EXPECT_EQ(timeline_misfit_text(report, false), "");
}

// The host link is far slower than compute: activations wait for room, not on the GPU.
TEST(Simulate, HoldsNoMoreThanTheLedgerWhereActivationsGoToTheHost) {
  const Outcome outcome = shardwise({"simulate",
                                     "--engine",
                                     "shardwise",
                                     "--model",
                                     "llama-3.1-8b",
                                     "--cluster",
                                     "dgx-h100",
                                     "--gpus",
                                     "8",
                                     "--pp",
                                     "2",
                                     "--zero-stage",
                                     "1",
                                     "--schedule",
                                     "gpipe",
                                     "--global-batch-size",
                                     "64",
                                     "--sequence-length",
                                     "4096",
                                     "--offload-activations",
                                     "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<StepReport> report = report_from_text(outcome.out, "stdout");
  ASSERT_TRUE(report.ok());
  for (const StageTimeline& stage : report->timeline->stages) {
    Bytes most;
    for (const MemorySample& sample : stage.memory) most = std::max(most, sample.allocated);
    EXPECT_EQ(most, report->stages[static_cast<std::size_t>(stage.stage)].peak_allocated());
  }
}

}  // namespace
}  // namespace shardwise::cli
