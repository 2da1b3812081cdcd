#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/texts/simulate_text.h"
#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/report/report_json.h"
#include "simulator/clock/simulate.h"
#include "tests/cli/command.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

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

// Defect N5: a small question that took 3.7 GB is refused before it takes any of it.
TEST(Simulate, RefusesAQuestionThatTakesMoreMemoryThanItMay) {
  std::vector<std::string> question = {"simulate",
                                       "--model",
                                       "pythia-2.8b",
                                       "--cluster",
                                       "aws-p4de",
                                       "--gpus",
                                       "8",
                                       "--engine",
                                       "fsdp2_in_megatron",
                                       "--cp",
                                       "8",
                                       "--dp-shard",
                                       "1",
                                       "--zero-stage",
                                       "3",
                                       "--kernels",
                                       "eager",
                                       "--sequence-length",
                                       "128",
                                       "--ignore-memory"};
  const std::string refusal = "--memory-limit: the simulation takes about 3.7";
  std::vector<std::string> limited = question;
  limited.insert(limited.end(), {"--memory-limit", "1GiB"});
  const Outcome refused = shardwise(limited);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr(refusal));
  EXPECT_THAT(refused.err, HasSubstr("more than 1.00 GiB"));
  if (test::kSanitized) return;
  // A quarter of what ulimit -v leaves is the limit where no other is given.
  std::vector<std::string> usual = {"-c", R"(ulimit -v 4194304 && exec "$@")", "sh",
                                    test::built("shardwise")};
  usual.insert(usual.end(), question.begin(), question.end());
  const Outcome held = test::run_program("/bin/sh", usual);
  EXPECT_EQ(held.exit_code, 2);
  EXPECT_THAT(held.err, HasSubstr(refusal));
}

TEST(Simulate, SaysWhatAMemoryLimitIs) {
  const auto limited = [](const char* limit) {
    return shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100", "--gpus", "1",
                      "--memory-limit", limit});
  };
  EXPECT_EQ(limited("1").exit_code, 0);
  EXPECT_EQ(limited("100MiB").exit_code, 0);
  for (const char* const wrong : {"much", "-1", "0", "1e99"}) {
    const Outcome refused = limited(wrong);
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("--memory-limit")) << wrong;
  }
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
