#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "planner/cost/layout_rules.h"
#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "simulator/closed_form.h"
#include "simulator/simulate.h"
#include "tests/planner/lowering/sampler.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

using test::Sampler;
using test::text_of;

/// A plan of 16 layers on GPUs of DGX H100.
Plan example(const std::string& engine, std::int64_t gpus) {
  Plan plan;
  plan.model = test::llama(16, 4096, 14336, 32, 8, 32000);
  plan.engine = *find_engine(engine);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.job.sequence_length = 4096;
  plan.job.global_batch_size = 32;
  return plan;
}

/// Plans of an engine on 16 GPUs, with layouts drawn from its whole search space.
template <class Visit>
void draw(const std::string& engine, int count, std::uint32_t seed, Visit&& visit) {
  Plan plan = example(engine, 16);
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  Sampler sampler(question, seed);
  for (int tries = 0; tries < 1'000'000 && count > 0; ++tries) {
    plan.layout = sampler.draw();
    if (!sampler.legal(plan.layout)) continue;
    --count;
    visit(plan);
  }
}

// What no program can beat, whatever it is: the chain of operations that wait for one another, and
// the work of one stream. And a stream runs one operation at a time.
TEST(SimulatedLayouts, AreNoShorterThanTheirChainsAndStreamsAndOverlapNothing) {
  std::uint32_t seed = 20261121;
  for (const std::string& engine : engine_names()) {
    draw(engine, 12, ++seed, [&](const Plan& plan) {
      for (const bool contention : {false, true}) {
        SimulationOptions options;
        options.contention = contention;
        const Simulation made = simulate(plan, options);
        const StepTimeline timeline = made.report.timeline.value_or(StepTimeline{});
        EXPECT_LE(timeline.critical_path.value(), made.timeline.length() * (1 + 1e-9))
            << engine << " " << text_of(plan.layout);
        for (const StageTimeline& stage : timeline.stages) {
          for (const StreamTime& stream : stage.streams) {
            EXPECT_LE(stream.busy.value(), made.timeline.length() * (1 + 1e-9))
                << engine << " " << stream.stream << " " << text_of(plan.layout);
          }
        }
        for (const Actor& actor : made.work.actors) {
          std::array<double, kStreams> until{};
          const StageProgram& stage = made.work.program_of(actor);
          for (std::size_t i = 0; i < stage.operations.size(); ++i) {
            double& free = until[static_cast<std::size_t>(stage.operations[i].stream)];
            ASSERT_GE(made.timeline.start[actor.base + i], free)
                << engine << " " << name_of(stage, stage.operations[i]) << text_of(plan.layout);
            free = made.timeline.end[actor.base + i];
          }
        }
      }
    });
  }
}

/// Step time by the closed form when neither collectives nor the host hold up compute.
double unslowed(const Plan& plan) { return closed_form_step(plan, {false, false}).value(); }

double simulated(const Plan& plan) {
  SimulationOptions options;
  options.contention = false;
  options.host = false;
  return simulate(plan, options).report.step_time.value();
}

TEST(SimulatedLayouts, TakeAsLongAsTheClosedFormSaysWhereNothingOverlaps) {
  for (const std::string& engine : engine_names()) {
    for (const std::int64_t batch : {1, 4}) {
      Plan plan = example(engine, 1);
      plan.layout.zero_stage = static_cast<std::int8_t>(plan.engine.zero_stages.front());
      plan.job.global_batch_size = batch;
      EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 1e-9) << engine << ", batch " << batch;
    }
  }
}

// Weights are cast to 8 bits once a step: those of the rank's shard where they travel so, else all.
TEST(SimulatedLayouts, CastWeightsTo8BitsOnceAStepAsTheClosedFormDoes) {
  for (const bool gathered : {false, true}) {
    Plan plan = example("megatron_ddp", 1);
    plan.layout.zero_stage = 0;
    plan.job.precision = DType::fp8;
    plan.job.fp8_parameter_gather = gathered;
    EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 1e-9) << gathered;
  }
}

/// The search would take the layout: it shares states, and no rule calls it another one's double.
bool is_itself(const Plan& plan) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  return std::ranges::none_of(layout_rules(), [&](const LayoutRule& rule) {
    return rule.redundant && rule.broken(question, plan.layout);
  });
}

/// A mixture of experts, on the same GPUs.
Plan mixture_example(const std::string& engine, std::int64_t gpus) {
  Plan plan = example(engine, gpus);
  plan.model = test::mixture(16, 2048, 16, 16, 2, 1024, 0);
  return plan;
}

/// Pipelines of a plan's engine that the search would take, gathers and reductions beside compute.
template <class Visit>
void draw_pipelines(Plan plan, int count, std::uint32_t seed, Visit&& visit) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  Sampler sampler(question, seed);
  for (int tries = 0; tries < 2'000'000 && count > 0; ++tries) {
    plan.layout = sampler.draw();
    const Layout& layout = plan.layout;
    if (layout.pp == 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) continue;
    if (!sampler.legal(plan.layout) || !is_itself(plan)) continue;
    --count;
    visit(plan);
  }
}

/// What a pipeline of dense models and of experts under every engine takes longer on the clock than
/// by the closed form, for as many draws of each.
template <class Visit>
void compare_pipelines(int draws, Visit&& visit) {
  std::uint32_t seed = 20261123;
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {16, 64}) {
      for (const std::string& engine : engine_names()) {
        const Plan plan = experts ? mixture_example(engine, gpus) : example(engine, gpus);
        draw_pipelines(plan, draws, ++seed, [&](const Plan& drawn) {
          visit(drawn, simulated(drawn) / unslowed(drawn) - 1);
        });
      }
    }
  }
}

TEST(SimulatedLayouts, AreNearTheClosedFormInPipelines) {
  int seen = 0;
  int within_one_percent = 0;
  compare_pipelines(8, [&](const Plan& plan, double apart) {
    // Copies of activations follow the layers whose average the closed form takes.
    const bool copies = plan.layout.offload_activations;
    EXPECT_NEAR(apart, 0, copies ? 0.02 : 0.012)
        << plan.engine.name << " " << plan.model.name << " " << text_of(plan.layout);
    ++seen;
    if (std::abs(apart) <= 0.01) ++within_one_percent;
  });
  EXPECT_GT(seen, 60);
  EXPECT_GT(within_one_percent, seen * 95 / 100);
}

// What is left is the start and the end of a step, where the closed form averages over layers.
TEST(SimulatedLayouts, AreNearTheClosedFormWhereOnlyDataParallelTrafficOverlaps) {
  std::uint32_t seed = 20261122;
  int seen = 0;
  int within_one_percent = 0;
  for (const std::string& engine : engine_names()) {
    draw(engine, 6000, ++seed, [&](const Plan& plan) {
      const Layout& layout = plan.layout;
      if (layout.pp > 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) return;
      if (!is_itself(plan)) return;
      const double apart = simulated(plan) / unslowed(plan) - 1;
      // The closed form hides copies of activations whole or not at all.
      const bool copies = layout.offload_activations;
      EXPECT_NEAR(apart, 0, copies ? 0.025 : 0.012) << engine << " " << text_of(layout);
      if (copies) return;
      ++seen;
      if (std::abs(apart) <= 0.01) ++within_one_percent;
    });
  }
  EXPECT_GT(seen, 50);
  EXPECT_GT(within_one_percent, seen * 9 / 10);
}

}  // namespace
}  // namespace shardwise::sim
