#include "planner/schedule/plain_sweep.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "planner/schedule/pipeline_sweep.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

struct SweptRun {
  PipelineRun run;
  std::vector<double> end;
};

SweptRun general(const PipelineSlots& slots, const std::vector<ChunkTime>& chunks, Seconds hop) {
  SweptRun swept;
  ChunkPasses passes(slots, chunks, {});
  swept.run = sweep_pipeline(slots, passes, hop, swept.end);
  return swept;
}

void expect_same(const Layout& layout, std::int64_t num_microbatches, std::mt19937& random) {
  const PipelineSlots slots = pipeline_slots(layout, num_microbatches);
  ASSERT_NE(slots.plain, nullptr);
  std::uniform_real_distribution<> seconds(0, 1);
  std::vector<ChunkTime> chunks;
  for (int i = 0; i < slots.stages * slots.chunks; ++i) {
    const Seconds weight(seconds(random));
    chunks.push_back({Seconds(seconds(random)), weight + Seconds(seconds(random)), weight});
  }
  for (const double hop : {0.0, 0.01, 3.0}) {
    SlotEnds ends;
    const RunAndLength plain = sweep_plain(*slots.plain, chunks, Seconds(hop), ends);
    const SweptRun with = general(slots, chunks, Seconds(hop));
    const SweptRun without = general(slots, chunks, Seconds(0));
    EXPECT_EQ(plain.run.length, with.run.length);
    EXPECT_EQ(plain.without_messages, without.run.length);
    EXPECT_EQ(plain.run.swept, with.run.swept);
    EXPECT_EQ(ends.end, with.end);
    for (std::size_t i = 0; i < without.end.size(); ++i) {
      EXPECT_EQ(ends.both[i].both[1], without.end[i]);
    }
    ASSERT_EQ(plain.run.spans.size(), with.run.spans.size());
    for (std::size_t s = 0; s < with.run.spans.size(); ++s) {
      EXPECT_EQ(plain.run.spans[s].begin, with.run.spans[s].begin);
      EXPECT_EQ(plain.run.spans[s].end, with.run.spans[s].end);
      EXPECT_EQ(plain.run.spans[s].last, with.run.spans[s].last);
    }
  }
}

TEST(PlainSweep, EqualsTheGeneralSweepToTheBit) {
  std::mt19937 random(20261125);
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::looped_bfs,
        PipelineSchedule::zb_h1, PipelineSchedule::zb_h2, PipelineSchedule::zb_v,
        PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v}) {
    for (const std::int32_t pp : {2, 4, 6}) {
      for (const std::int32_t vpp : {1, 2, 3}) {
        Layout layout;
        layout.schedule = schedule;
        layout.pp = pp;
        layout.vpp = vpp;
        if (vpp > 1 && !facts_of(schedule).takes_vpp) continue;
        expect_same(layout, 4 * pp, random);
      }
    }
  }
}

}  // namespace
}  // namespace shardwise
