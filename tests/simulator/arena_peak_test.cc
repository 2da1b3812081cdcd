#include <gtest/gtest.h>

#include <string>

#include "planner/cost/memory.h"
#include "planner/cost/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/names.h"
#include "simulator/simulate.h"
#include "tests/planner/lowering/pipelines.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

Plan arena_plan(const ModelSpec& model) {
  Plan plan;
  plan.model = model;
  plan.engine = shardwise_engine();
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = 96;
  return plan;
}

/// Stages whose simulated peak is not the ledger's, and by how many bytes.
std::string apart(const Plan& plan, const SimulationOptions& options) {
  const Simulation made = simulate(plan, options);
  const LayoutMemory memory =
      layout_memory(plan.model, plan.job, plan.engine,
                    runtime_memory(plan.engine, plan.cluster.gpu), plan.layout);
  std::string text;
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    for (const MemoryMoment& moment : made.memory[s].moments) EXPECT_GE(moment.allocated, 0);
    const std::int64_t more =
        made.memory[s].peak_allocated - memory.stages[s].peak_allocated().value();
    if (more != 0) text += "stage " + std::to_string(s) + ": " + std::to_string(more) + " ";
  }
  return text.empty() ? text : text + plan.model.name + " " + test::text_of(plan.layout) + "\n";
}

// What the clock makes of an arena: operations of several streams at once, with links that are
// shared and without.
TEST(SimulatedArena, HasTheLedgersPeakToTheByteOnEveryStage) {
  std::uint32_t seed = 2211;
  for (const test::Way& way : test::kWays) {
    Plan plan = arena_plan(test::llama(19, 1024, 2816, 8, 4, 32000));
    const int drawn = test::draw_pipelines(plan, way, 6, ++seed, [&] {
      SimulationOptions options;
      options.contention = seed % 2 == 0;
      EXPECT_EQ(apart(plan, options), "");
    });
    EXPECT_EQ(drawn, 6) << name_of(way.schedule) << " " << way.vpp;
  }
}

// A small head, so that blocks are fullest, also where all of a micro-batch is held until its
// weight gradients.
TEST(SimulatedArena, HasTheLedgersPeakWhateverIsComputedAgain) {
  const std::vector<ModelSpec> models = {test::llama(19, 1024, 2816, 8, 4, 2000),
                                         test::gpt(19, 512, 8, 2000),
                                         test::mixture(18, 512, 8, 8, 2, 1024, 256)};
  std::uint32_t seed = 2311;
  int compared = 0;
  for (const test::Way& way : test::kWays) {
    for (const ModelSpec& model : models) {
      Plan plan = arena_plan(model);
      const LayoutQuestion question =
          layout_question(plan.model, plan.cluster, plan.job, plan.engine);
      const test::Sampler rules(question, seed);
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        test::draw_pipelines(plan, way, 3, ++seed, [&] {
          plan.layout.recompute = recompute;
          if (recompute != Recompute::full) plan.layout.recompute_interval = 1;
          if (!rules.legal(plan.layout)) return;
          plan.job.attention =
              compared % 3 == 0 ? AttentionKernel::flash : AttentionKernel::materialised;
          for (const Granularity granularity : {Granularity::layer, Granularity::kernel}) {
            SimulationOptions options;
            options.contention = seed % 2 == 0;
            options.granularity = granularity;
            EXPECT_EQ(apart(plan, options), "")
                << (granularity == Granularity::kernel ? "kernels" : "layers");
            ++compared;
          }
        });
      }
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace shardwise::sim
