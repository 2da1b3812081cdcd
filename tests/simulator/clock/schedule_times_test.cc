#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/lowering/lower.h"
#include "planner/schedule/pipeline.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "simulator/clock/simulate.h"
#include "tests/simulator/clock/pace.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

constexpr int kBlocks = 64;

struct EqualStages {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int p = 2;
  int v = 1;
  int m = 16;
};

Plan equal_stages_plan(const EqualStages& pipeline) {
  Plan plan;
  plan.model = test::llama(kBlocks, 1024, 4096, 8, 8, 512);
  plan.engine = *find_engine("shardwise");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), pipeline.p);
  plan.job.global_batch_size = pipeline.m;
  plan.layout.pp = pipeline.p;
  plan.layout.vpp = pipeline.v;
  plan.layout.zero_stage = 0;
  plan.layout.schedule = pipeline.schedule;
  return plan;
}

/// The step of equal stages that do nothing but the passes of their blocks and their messages.
double length(const EqualStages& pipeline, const Pace& pace) {
  const Plan plan = equal_stages_plan(pipeline);
  const StepProgram program = lower(plan, Granularity::layer);
  Prices prices = prices_of(plan, program, Transport::usual);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (std::size_t c = 0; c < program.stages[s].costs.size(); ++c) {
      const OpCost& cost = program.stages[s].costs[c];
      double& seconds = prices[s][c].seconds;
      seconds = 0;
      if (!cost.collectives.empty() && cost.collectives.front().kind == CollectiveKind::send_recv) {
        seconds = pace.hop;
      }
      if (cost.layers.empty()) continue;
      const LayerWork& work = cost.layers.front();
      const LayerSpec& layer = plan.model.kinds[static_cast<std::size_t>(work.kind)];
      if (layer.role != LayerRole::block) continue;
      seconds = seconds_of(work.part, pace) * pipeline.p / kBlocks;
    }
  }
  return run_alone(representatives(program, prices)).length();
}

std::string stages_text(const EqualStages& pipeline) {
  return std::string(name_of(pipeline.schedule)) + " p " + std::to_string(pipeline.p) + " v " +
         std::to_string(pipeline.v) + " m " + std::to_string(pipeline.m);
}

/// The closed form of the same.
double closed(const EqualStages& pipeline, const Pace& pace) {
  const Layout layout = equal_stages_plan(pipeline).layout;
  const PipelineSlots slots = pipeline_slots(layout, pipeline.m);
  ChunkTime chunk;
  // Under DualPipe a chunk is a stage's part of the model, of which there are two copies.
  const bool whole = layout.schedule == PipelineSchedule::dualpipe;
  const double share = whole ? 1.0 : 1.0 / slots.chunks;
  chunk.forward = Seconds(pace.forward * share);
  chunk.backward = Seconds((pace.input + pace.weight) * share);
  chunk.weight_gradient = Seconds(pace.weight * share);
  const std::vector<ChunkTime> chunks(static_cast<std::size_t>(slots.stages * slots.chunks), chunk);
  return run_pipeline(slots, chunks, Seconds(pace.hop)).length.value();
}

// Forward, input-gradient and weight-gradient passes of unequal length, as real ones are; messages
// of none, of a tenth of a pass and of as long as one; fewer micro-batches than stages, as many,
// more. Schedules that are only legal with more are asked for those.
TEST(PipelineRun, IsAsLongAsTheLoweredScheduleTakes) {
  struct Case {
    PipelineSchedule schedule;
    int v;
    int fewest;  // micro-batches, in stages
  };
  for (const Case& c :
       {Case{PipelineSchedule::one_f_one_b, 1, 0}, Case{PipelineSchedule::gpipe, 1, 0},
        Case{PipelineSchedule::one_f_one_b, 2, 1}, Case{PipelineSchedule::one_f_one_b, 4, 1},
        Case{PipelineSchedule::looped_bfs, 2, 0}, Case{PipelineSchedule::looped_bfs, 4, 0},
        Case{PipelineSchedule::zb_h1, 1, 0}, Case{PipelineSchedule::zb_h2, 1, 2},
        Case{PipelineSchedule::zb_v, 1, 2}, Case{PipelineSchedule::dualpipe, 1, 2},
        Case{PipelineSchedule::dualpipe_v, 1, 2}}) {
    for (const int p : {2, 4, 8}) {
      for (const int m : {p / 2, p, 2 * p, 4 * p}) {
        if (m < c.fewest * p) continue;
        const EqualStages pipeline = {c.schedule, p, c.v, m};
        for (const double hop : {0.0, 0.03, 0.3}) {
          for (const Pace& pace : {Pace{1, 1, 1, hop}, Pace{0.33, 0.4, 0.27, hop}}) {
            EXPECT_NEAR(length(pipeline, pace) / closed(pipeline, pace), 1, 1e-9)
                << stages_text(pipeline) << " message " << hop;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
