#include "planner/search/pricing/streams_floor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/cost/step/pass_streams.h"
#include "planner/cost/step/pipeline_data.h"
#include "planner/schedule/pipeline_sweep.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise::test {
namespace {

struct FloorCase {
  std::string engine;
  std::int8_t zero = 3;
  std::int32_t pp = 1;
  std::int32_t vpp = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  bool every = true;
  std::int32_t replicas = 1;
  std::int32_t reshard = 1;
};

struct FloorAndEnd {
  double floor = 0;
  double end = 0;  // of the sweep layer by layer
};

FloorAndEnd found(const FloorCase& c, std::int64_t microbatches, double links) {
  Priced p;
  p.engine = *find_engine(c.engine);
  p.layout.pp = c.pp;
  p.layout.vpp = c.vpp;
  p.layout.schedule = c.schedule;
  p.layout.dp_shard = 16;
  p.layout.dp_replicate = c.replicas;
  p.layout.zero_stage = c.zero;
  p.layout.reduce_every_microbatch = c.every;
  p.layout.reshard_after_forward = c.reshard;
  p.size(microbatches);
  for (LinkTier& tier : p.cluster.tiers) tier.bandwidth = tier.bandwidth * links;
  const TimeRules rules = time_rules(p.job, p.engine, p.cluster);
  CollectiveTables tables(p.cluster);
  const DataParallelTables groups =
      data_parallel_tables(tables, p.cluster, p.layout, {false, false});
  const LeafContext context = {&rules, &p.layout, &groups, p.num_microbatches()};
  EXPECT_TRUE(reduces_by_unit(context)) << c.engine;
  const StageTimes stages = p.stages();
  const PassLosses losses = pass_losses(stage_kernels(stages).slowest, context);
  PassStreams passes(stages, context, losses);
  std::vector<double> ends;
  sweep_pipeline(*stages.pipeline.slots, passes, stages.hop, ends);
  passes.finish();
  // As the search has them before it sweeps.
  const std::vector<LayerPace> layers =
      layer_paces(layer_times(p.model, p.job, p.engine, p.cluster, p.layout), p.memories, rules,
                  p.layout, assign_stages(p.model, p.layout));
  return {streams_floor(layers, assign_stages(p.model, p.layout), context, losses).value(),
          passes.end().value()};
}

using enum PipelineSchedule;
const std::vector<FloorCase> kCases = {
    {"megatron_fsdp"},
    {"megatron_fsdp", 2},
    {"megatron_fsdp", 3, 4},
    {"megatron_fsdp", 2, 4, 2},
    {"megatron_fsdp", 3, 4, 2},
    {"megatron_fsdp", 3, 4, 1, gpipe},
    {"megatron_fsdp", 3, 4, 1, zb_h1},
    {"megatron_fsdp", 3, 2, 1, zb_v},
    {"megatron_fsdp", 3, 1, 1, one_f_one_b, true, 2},
    {"fsdp1"},
    {"fsdp1", 3, 1, 1, one_f_one_b, true, 4},
    {"fsdp2"},
    {"fsdp2", 3, 1, 1, one_f_one_b, false},
    {"fsdp2", 3, 1, 1, one_f_one_b, true, 1, 0},
    {"fsdp2", 3, 1, 1, one_f_one_b, true, 1, 4},
    {"fsdp2", 3, 4, 1, one_f_one_b, false, 1, 0},
    {"deepspeed"},
    {"internevo"},
    {"shardwise"},
    {"shardwise", 2},
    {"shardwise", 3, 4, 2, one_f_one_b},
};

TEST(StreamsFloor, IsNoLongerThanThePassesLayerByLayer) {
  for (const FloorCase& c : kCases) {
    for (const std::int64_t microbatches : {4, 8, 24}) {
      for (const double links : {0.02, 0.1, 1.0}) {
        const FloorAndEnd of = found(c, microbatches, links);
        EXPECT_GT(of.floor, 0);
        EXPECT_LE(of.floor, of.end * (1 + 1e-9))
            << c.engine << " ZeRO " << int{c.zero} << " pp " << c.pp << " vpp " << c.vpp << " m "
            << microbatches << " links " << links;
      }
    }
  }
}

// On slow links most of a step is gathers, which nothing hides.
TEST(StreamsFloor, IsNearlyAsLongWhereLinksAreSlow) {
  for (const FloorCase& c : kCases) {
    const bool counts = c.pp == 1 && c.reshard == 1 && c.engine != "deepspeed";
    if (!counts) continue;
    const FloorAndEnd of = found(c, 24, 0.02);
    EXPECT_GT(of.floor, 0.5 * of.end) << c.engine << " ZeRO " << int{c.zero};
  }
}

TEST(StreamsFloor, IsZeroWherePassesRunInPairs) {
  EXPECT_EQ(found({"megatron_fsdp", 3, 2, 1, dualpipe_v}, 8, 1).floor, 0);
}

}  // namespace
}  // namespace shardwise::test
