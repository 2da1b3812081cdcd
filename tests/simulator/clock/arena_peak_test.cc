#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "simulator/clock/simulate.h"
#include "tests/planner/lowering/pipelines.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

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
std::string ledger_differences(const Plan& plan, const SimulationOptions& options) {
  const Simulation made = simulate(plan, options);
  const LayoutMemory memory =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
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
// shared and without, and activations that go to the host or stay.
TEST(SimulatedArena, HasTheLedgersPeakToTheByteOnEveryStage) {
  std::uint32_t seed = 2211;
  int offload = 0;
  for (const test::Way& way : test::kWays) {
    Plan plan = arena_plan(test::llama(19, 1024, 2816, 8, 4, 32000));
    const int drawn = test::draw_pipelines(plan, way, 6, ++seed, [&] {
      SimulationOptions options;
      options.contention = seed % 2 == 0;
      EXPECT_EQ(ledger_differences(plan, options), "");
      offload += plan.layout.offload_activations ? 1 : 0;
    });
    EXPECT_EQ(drawn, 6) << name_of(way.schedule) << " " << way.vpp;
  }
  EXPECT_GT(offload, 20);
}

struct OffloadedPipeline {
  const char* engine;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t pp = 1;
  std::int32_t vpp = 1;
};

// Whether the link to the host or compute sets the pace: a layer waits until activations of the
// layer before the last have left, so that they do not pile up.
TEST(OffloadedActivations, AreThoseOfTwoLayersOnTheClockAsInTheLedger) {
  constexpr OffloadedPipeline kPipelines[] = {{"shardwise", PipelineSchedule::gpipe, 2},
                                              {"shardwise", PipelineSchedule::one_f_one_b, 2},
                                              {"shardwise", PipelineSchedule::one_f_one_b, 2, 3},
                                              {"shardwise", PipelineSchedule::zb_h1, 4},
                                              {"shardwise"},
                                              {"megatron_ddp"},
                                              {"megatron_ddp", PipelineSchedule::one_f_one_b, 4},
                                              {"megatron_ddp", PipelineSchedule::one_f_one_b, 2, 3},
                                              {"fsdp2", PipelineSchedule::gpipe, 4},
                                              {"fsdp2", PipelineSchedule::looped_bfs, 2, 2},
                                              {"fsdp2", PipelineSchedule::zb_v, 2},
                                              {"deepspeed", PipelineSchedule::one_f_one_b, 4},
                                              {"internevo", PipelineSchedule::zb_h1, 4}};
  for (const OffloadedPipeline& p : kPipelines) {
    for (const double gb_per_s : {2.0, 25.0, 400.0}) {
      Plan plan;
      plan.model = test::llama(12, 4096, 14336, 32, 8, 32000);
      plan.engine = *find_engine(p.engine);
      plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
      plan.cluster.host_link = BytesPerSecond(gb_per_s * 1e9);
      plan.job.sequence_length = 4096;
      plan.job.global_batch_size = 64;
      plan.layout = {.pp = p.pp, .dp_shard = 8 / p.pp};
      plan.layout.vpp = p.vpp;
      plan.layout.schedule = p.schedule;
      plan.layout.offload_activations = true;
      plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
      const Simulation made = simulate(plan, {});
      const LayoutMemory memory =
          layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
      for (std::size_t s = 0; s < memory.stages.size(); ++s) {
        const std::int64_t peak = made.memory[s].peak_allocated;
        const std::int64_t ledger = memory.stages[s].peak_allocated().value();
        const bool planned = plan.engine.allocator == AllocatorKind::arena;
        EXPECT_LE(std::abs(peak - ledger), planned ? 0 : ledger / 1000)
            << p.engine << " " << name_of(p.schedule) << " stage " << s << " at " << gb_per_s;
      }
    }
  }
}

// A small head, so that blocks are fullest, also where all of a micro-batch is held until its
// weight gradients.
TEST(SimulatedArena, HasTheLedgersPeakWhateverIsComputedAgain) {
  const std::vector<ModelSpec> models = {test::llama(19, 1024, 2816, 8, 4, 2000),
                                         test::gpt(19, 512, 8, 2000),
                                         test::mixture(18, 512, 8, 8, 2, 1024, 256)};
  constexpr int kDraws = test::kSanitized ? 1 : 3;
  std::uint32_t seed = 2311;
  int compared = 0;
  for (const test::Way& way : test::kWays) {
    for (const ModelSpec& model : models) {
      Plan plan = arena_plan(model);
      const LayoutQuestion question =
          layout_question(plan.model, plan.cluster, plan.job, plan.engine);
      const test::Sampler rules(question, seed);
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        test::draw_pipelines(plan, way, kDraws, ++seed, [&] {
          plan.layout.recompute = recompute;
          if (recompute != Recompute::full) plan.layout.recompute_interval = 1;
          if (!rules.legal(plan.layout)) return;
          plan.job.attention =
              compared % 3 == 0 ? AttentionKernel::flash : AttentionKernel::materialised;
          for (const Granularity granularity : {Granularity::layer, Granularity::kernel}) {
            SimulationOptions options;
            options.contention = seed % 2 == 0;
            options.granularity = granularity;
            EXPECT_EQ(ledger_differences(plan, options), "")
                << (granularity == Granularity::kernel ? "kernels" : "layers");
            ++compared;
          }
        });
      }
    }
  }
  EXPECT_GT(compared, 170 * kDraws);
}

}  // namespace
}  // namespace shardwise::sim
