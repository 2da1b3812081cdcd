#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pass_streams.h"
#include "planner/schedule/pipeline_sweep.h"
#include "planner/schedule/slot_order.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/names.h"
#include "tests/planner/cost/step/time_fixture.h"
#include "tests/planner/schedule/unrolled.h"

namespace shardwise::test {
namespace {

struct LoopedCase {
  PipelineSchedule schedule;
  std::int32_t pp = 4;
  std::int32_t vpp = 1;
};

Layout layout_of(const LoopedCase& c) {
  Layout layout;
  layout.pp = c.pp;
  layout.vpp = c.vpp;
  layout.schedule = c.schedule;
  return layout;
}

std::string case_text(const LoopedCase& c, std::int64_t m) {
  return std::string(name_of(c.schedule)) + " pp " + std::to_string(c.pp) + " vpp " +
         std::to_string(c.vpp) + " micro-batches " + std::to_string(m);
}

std::vector<LoopedCase> all_cases() {
  using S = PipelineSchedule;
  std::vector<LoopedCase> cases;
  for (const std::int32_t pp : {2, 3, 4, 6, 8, 13}) {
    for (const S schedule :
         {S::one_f_one_b, S::gpipe, S::zb_h1, S::zb_h2, S::zb_v, S::dualpipe, S::dualpipe_v}) {
      if (schedule != S::dualpipe || pp % 2 == 0) cases.push_back({schedule, pp});
    }
    for (const std::int32_t vpp : {2, 3, 5}) cases.push_back({S::one_f_one_b, pp, vpp});
  }
  return cases;
}

// Whatever number of micro-batches a schedule has beyond a few, loops stand for all of its passes
// and messages, each waiting for the same others.
TEST(SlotLoops, StandForAllSlotsOneByOne) {
  for (const LoopedCase& c : all_cases()) {
    const Layout layout = layout_of(c);
    const std::int64_t step = c.vpp > 1 ? c.pp : c.schedule == PipelineSchedule::dualpipe ? 2 : 1;
    std::int64_t looped = 0;
    for (std::int64_t m = 2 * c.pp; m < 16 * c.pp + 40; m += step * (1 + m % 3)) {
      for (const bool planned : {false, true}) {
        const PipelineSlots slots = pipeline_slots(layout, m, planned, 0);
        SlotOrder all = slot_order(layout, m, planned);
        const PipelineSlots each = unrolled(slots);
        ASSERT_EQ(each.slots.size(), all.slots.slots.size()) << case_text(c, m);
        EXPECT_EQ(each.slots, all.slots.slots) << case_text(c, m);
        EXPECT_EQ(each.room, all.slots.room) << case_text(c, m);
        EXPECT_EQ(slots.messages, std::ranges::max(all.exchanged)) << case_text(c, m);
        looped += slots.loops.empty() ? 0 : 1;
      }
    }
    EXPECT_GT(looped, 4) << case_text(c, 0);
  }
}

/// A pipeline of an engine on slow links, whose hosts take `issue` seconds a kernel.
struct SweptPipeline {
  SweptPipeline(const LoopedCase& c, const std::string& engine, std::int8_t zero, double issue,
                bool offloads)
      : case_(c) {
    priced_.engine = *find_engine(engine);
    priced_.layout = layout_of(c);
    priced_.layout.tp = 2;
    priced_.layout.dp_shard = 2;
    priced_.layout.zero_stage = zero;
    priced_.layout.offload_activations = offloads;
    issue_ = issue;
  }

  struct Times {
    PipelineRun run;
    double end = 0;
  };
  /// \param most_unrolled  of pipeline_slots()
  Times times(std::int64_t microbatches, std::int64_t most_unrolled) {
    priced_.size(microbatches);
    TimeRules rules = time_rules(priced_.job, priced_.engine, priced_.cluster);
    rules.issue = Seconds(issue_);
    CollectiveTables tables(priced_.cluster);
    const DataParallelTables groups =
        data_parallel_tables(tables, priced_.cluster, priced_.layout, {false, false});
    const LeafContext context = {&rules, &priced_.layout, &groups, microbatches};
    StageTimes stages = priced_.stages();
    stages.hop = Seconds(2e-3);
    stages.pipeline.slots = std::make_shared<const PipelineSlots>(
        pipeline_slots(priced_.layout, microbatches, plans_buffers(priced_.engine), most_unrolled));
    PassStreams passes(stages, context, pass_losses(stage_kernels(stages).slowest, context));
    std::vector<double> end;
    Times times;
    times.run = sweep_pipeline(*stages.pipeline.slots, passes, stages.hop, end);
    passes.finish();
    times.end = passes.end().value();
    return times;
  }

  LoopedCase case_;
  Priced priced_;
  double issue_ = 0;
};

void expect_alike(const SweptPipeline::Times& some, const SweptPipeline::Times& all,
                  const std::string& named) {
  const double near = 1e-12 * all.end;
  EXPECT_NEAR(some.end, all.end, near) << named;
  EXPECT_NEAR(some.run.length.value(), all.run.length.value(), near) << named;
  for (std::size_t i = 0; i < all.run.spans.size(); ++i) {
    EXPECT_NEAR(some.run.spans[i].begin.value(), all.run.spans[i].begin.value(), near) << named;
    EXPECT_NEAR(some.run.spans[i].end.value(), all.run.spans[i].end.value(), near) << named;
  }
}

std::vector<SweptPipeline> all_swept() {
  using S = PipelineSchedule;
  std::vector<SweptPipeline> all;
  for (const LoopedCase& c :
       {LoopedCase{S::one_f_one_b, 4}, LoopedCase{S::one_f_one_b, 4, 2}, LoopedCase{S::gpipe, 3},
        LoopedCase{S::zb_h1, 4}, LoopedCase{S::zb_h2, 3}, LoopedCase{S::zb_v, 3},
        LoopedCase{S::dualpipe, 4}, LoopedCase{S::dualpipe_v, 3}}) {
    for (const char* engine : {"shardwise", "megatron_ddp", "fsdp2", "megatron_fsdp"}) {
      const std::int8_t zero = engine[0] == 'm' && engine[9] == 'd' ? 1 : 3;
      for (const double issue : {0.0, 3e-5, 4e-4}) {
        for (const bool offloads : {false, true})
          all.emplace_back(c, engine, zero, issue, offloads);
      }
    }
  }
  return all;
}

// The steady state of every schedule is closed to rounding, with parameters and gradients beside
// the passes, hosts that are late, messages that take long and copies to the host (D2).
TEST(SlotLoops, TakeAsLongAsAllMicrobatchesOneByOne) {
  for (SweptPipeline& swept : all_swept()) {
    for (const std::int64_t m : {48, 60, 120}) {
      const SweptPipeline::Times some = swept.times(m, 0);
      expect_alike(some, swept.times(m, m),
                   case_text(swept.case_, m) + " " + swept.priced_.engine.name + " at " +
                       std::to_string(swept.issue_));
    }
  }
}

// Eight million micro-batches are the work of four thousand: what is added is a period of the
// timeline more often, and no more than the search for the end of it (D2).
TEST(SlotLoops, AreTheSameWorkForAnyNumberOfMicrobatches) {
  for (SweptPipeline& swept : all_swept()) {
    const SweptPipeline::Times few = swept.times(4096, 0);
    const SweptPipeline::Times more =
        swept.times(4096 + 5040, 0);  // a multiple of all short periods
    const SweptPipeline::Times many = swept.times(4096 + 1587 * 5040, 0);
    const std::string named = case_text(swept.case_, 0) + " " + swept.priced_.engine.name + " at " +
                              std::to_string(swept.issue_);
    EXPECT_LE(static_cast<double>(many.run.swept), 2.5 * static_cast<double>(few.run.swept))
        << named;
    EXPECT_NEAR(many.end, few.end + 1587 * (more.end - few.end), 1e-9 * many.end) << named;
  }
}

}  // namespace
}  // namespace shardwise::test
