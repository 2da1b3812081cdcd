#include "planner/cost/step/issued_passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "planner/cost/step/pass_streams.h"
#include "planner/schedule/pipeline_sweep.h"
#include "planner/spec/plan/names.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise::test {
namespace {

// Three kernels of 2 s that the host issues in 3 s each: the third begins at 9 s. Of 4 s, with 1 s
// for each: the first at 1 s, then one after the other.
TEST(IssuedKernels, RunAsTheyAreIssued) {
  const IssuedKernels late = IssuedKernels(Seconds(2), 1, 3).times(3);
  HostClock slow(3);
  EXPECT_DOUBLE_EQ(slow.run(late, 0), 11);
  EXPECT_DOUBLE_EQ(slow.issued(), 9);
  const IssuedKernels early = IssuedKernels(Seconds(4), 1, 1).times(3);
  HostClock fast(1);
  EXPECT_DOUBLE_EQ(fast.run(early, 0), 13);
  EXPECT_DOUBLE_EQ(fast.run(early, 20), 32);
  EXPECT_DOUBLE_EQ(fast.issued(), 6);
}

// An operation of ten kernels in 2 s whose host takes 0.5 s for each ends when the last is issued.
TEST(IssuedKernels, EndNoEarlierThanTheLastIsIssued) {
  HostClock host(0.5);
  EXPECT_DOUBLE_EQ(host.run(IssuedKernels(Seconds(2), 10, 0.5), 0), 5);
}

// Whatever is put together, one after the other takes as long.
TEST(IssuedKernels, ArePutTogetherExactly) {
  std::mt19937 random(3);
  const auto draw = [&] { return std::uniform_real_distribution<>(0, 10)(random); };
  for (int i = 0; i < 200; ++i) {
    const IssuedKernels a(Seconds(draw()), 1 + std::floor(draw()), 0.7);
    const IssuedKernels b(Seconds(draw()), 1 + std::floor(draw()), 0.7);
    const double ready = 3 * draw();
    HostClock one_by_one(0.7);
    double end = ready;
    for (int n = 0; n < 5; ++n) end = one_by_one.run(b, one_by_one.run(a, end));
    HostClock at_once(0.7);
    EXPECT_NEAR(at_once.run(a.then(b).times(5), ready), end, 1e-9);
    EXPECT_NEAR(at_once.issued(), one_by_one.issued(), 1e-9);
  }
}

struct IssuedCase {
  const char* engine;
  PipelineSchedule schedule;
  std::int32_t pp = 4;
  std::int32_t vpp = 1;
};
constexpr IssuedCase kIssuedCases[] = {{"megatron_ddp", PipelineSchedule::one_f_one_b},
                                       {"megatron_ddp", PipelineSchedule::one_f_one_b, 4, 2},
                                       {"megatron_ddp", PipelineSchedule::one_f_one_b, 1},
                                       {"megatron_ddp", PipelineSchedule::gpipe},
                                       {"megatron_ddp", PipelineSchedule::zb_h1},
                                       {"megatron_ddp", PipelineSchedule::zb_v},
                                       {"megatron_ddp", PipelineSchedule::dualpipe_v},
                                       {"megatron_deepspeed", PipelineSchedule::one_f_one_b},
                                       {"megatron_ddp", PipelineSchedule::looped_bfs, 4, 2}};

// Chunks at once and layers one by one are two roads to the same passes, whether the host is late
// or not, whether it waits for messages or not.
TEST(IssuedPasses, AreThoseOfPassStreamsLayerByLayer) {
  for (const IssuedCase& c : kIssuedCases) {
    for (const double issue : {0.0, 1e-6, 2e-5, 2e-4, 1e-3}) {
      Priced p;
      p.engine = *find_engine(c.engine);
      p.layout = {.tp = 2, .pp = c.pp, .dp_shard = 1};
      p.layout.vpp = c.vpp;
      p.layout.schedule = c.schedule;
      p.layout.zero_stage = 0;
      p.size(8);
      TimeRules rules = time_rules(p.job, p.engine, p.cluster);
      rules.issue = Seconds(issue);
      CollectiveTables tables(p.cluster);
      const DataParallelTables groups =
          data_parallel_tables(tables, p.cluster, p.layout, {false, false});
      const LeafContext context = {&rules, &p.layout, &groups, p.num_microbatches()};
      const StageTimes stages = p.stages();
      const PipelineSlots& slots = *stages.pipeline.slots;
      IssuedPasses at_once(stages.pipeline, host_rules(context, stages.hop));
      PassStreams by_layer(stages, context, {});
      std::vector<double> end;
      const PipelineRun run = sweep_pipeline(slots, at_once, stages.hop, end);
      const PipelineRun expected = sweep_pipeline(slots, by_layer, stages.hop, end);
      const double near = 1e-9 * expected.length.value();
      const auto named = std::string(c.engine) + " " + std::string(name_of(c.schedule)) + " pp " +
                         std::to_string(c.pp) + " vpp " + std::to_string(c.vpp) + " at " +
                         std::to_string(issue);
      EXPECT_NEAR(run.length.value(), expected.length.value(), near) << named;
      for (std::size_t i = 0; i < run.spans.size(); ++i) {
        EXPECT_NEAR(run.spans[i].begin.value(), expected.spans[i].begin.value(), near) << named;
        EXPECT_NEAR(run.spans[i].end.value(), expected.spans[i].end.value(), near) << named;
      }
      const double without = stages.pipeline.run.length.value();
      EXPECT_GE(run.length.value(), without * (1 - 1e-9)) << named;
      if (issue == 0) {
        EXPECT_NEAR(run.length.value(), without, near) << named;
      }
      const IssuedRun issued = issued_run(stages, context);
      EXPECT_EQ(issued.late, issue > 1e-4) << named;
    }
  }
}

}  // namespace
}  // namespace shardwise::test
