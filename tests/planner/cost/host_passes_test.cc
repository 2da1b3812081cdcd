#include "planner/cost/host_passes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "planner/cost/pass_streams.h"
#include "planner/cost/pipeline_data.h"
#include "planner/spec/names.h"
#include "tests/planner/cost/time_fixture.h"

namespace shardwise::test {
namespace {

struct Case {
  PipelineSchedule schedule;
  std::int32_t vpp = 1;
  const char* engine = "megatron_ddp";
};
constexpr Case kCases[] = {{PipelineSchedule::one_f_one_b},
                           {PipelineSchedule::gpipe},
                           {PipelineSchedule::zb_h1},
                           {PipelineSchedule::zb_v},
                           {PipelineSchedule::dualpipe_v},
                           {PipelineSchedule::one_f_one_b, 2},
                           {PipelineSchedule::looped_bfs, 2},
                           {PipelineSchedule::looped_bfs, 2, "shardwise"},
                           {PipelineSchedule::looped_bfs, 8, "shardwise"},
                           {PipelineSchedule::gpipe, 1, "shardwise"},
                           {PipelineSchedule::dualpipe, 1, "shardwise"},
                           {PipelineSchedule::zb_v, 1, "shardwise"}};

// Layers one by one and runs of layers at once are two roads to the same passes, whether compute or
// the link to the host sets the pace.
TEST(HostPasses, AreThoseOfPassStreamsLayerByLayer) {
  std::mt19937 random(7);
  for (const Case& c : kCases) {
    for (const double gb_per_s : {1.0, 8.0, 25.0, 60.0, 400.0}) {
      Priced p;
      p.engine = *find_engine(c.engine);
      p.layout = {.tp = 2, .pp = 4, .dp_shard = 2};
      p.layout.vpp = c.vpp;
      p.layout.schedule = c.schedule;
      p.layout.zero_stage = 1;
      p.layout.offload_activations = true;
      p.size(8 + 4 * static_cast<std::int64_t>(random() % 3));
      p.cluster.host_link = BytesPerSecond(gb_per_s * 1e9);
      TimeRules rules = time_rules(p.job, p.engine, p.cluster);
      rules.issue = Seconds(0);
      CollectiveTables tables(p.cluster);
      const DataParallelTables groups =
          data_parallel_tables(tables, p.cluster, p.layout, {false, false});
      const LeafContext context = {&rules, &p.layout, &groups, p.num_microbatches()};
      ASSERT_TRUE(only_offloads(context));
      const StageTimes stages = p.stages();
      std::vector<double> copied;
      std::vector<double> end;
      HostPasses at_once(stages, context, copied);
      PassStreams by_layer(stages, context, {});
      const PipelineSlots& slots = *stages.pipeline.slots;
      const PipelineRun run = sweep_pipeline(slots, at_once, stages.hop, end);
      const PipelineRun expected = sweep_pipeline(slots, by_layer, stages.hop, end);
      const double near = 1e-10 * expected.length.value();
      const auto named = std::string(name_of(c.schedule)) + " at " + std::to_string(gb_per_s);
      EXPECT_NEAR(run.length.value(), by_layer.end().value(), near) << named;
      for (std::size_t i = 0; i < run.spans.size(); ++i) {
        EXPECT_NEAR(run.spans[i].begin.value(), expected.spans[i].begin.value(), near) << named;
        EXPECT_NEAR(run.spans[i].end.value(), expected.spans[i].end.value(), near) << named;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::test
