#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

using test::text_of;

// What no program can beat, whatever it is: the chain of operations that wait for one another, and
// the work of one stream. And a stream runs one operation at a time.
TEST(SimulatedLayouts, AreNoShorterThanTheirChainsAndStreamsAndOverlapNothing) {
  SeedsOfEngines seeds(20261121);
  for (const std::string& engine : engine_names()) {
    draw(example(engine, 16), 12, seeds.next(engine), [&](const Plan& plan) {
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

// Dense models and experts, on two nodes and on eight.
TEST(SimulatedLayouts, AreNearTheClosedFormWhereOnlyDataParallelTrafficOverlaps) {
  SeedsOfEngines seeds(20261122);
  Apart apart;
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {16, 64}) {
      for (const std::string& engine : engine_names()) {
        const Plan plan = experts ? mixture_example(engine, gpus) : example(engine, gpus);
        draw(plan, 6000, seeds.next(engine), [&](const Plan& drawn) {
          const Layout& layout = drawn.layout;
          if (layout.pp > 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) return;
          if (is_itself(drawn)) apart.expect_near(drawn);
        });
      }
    }
  }
  apart.expect_drawn(300);
}

// Layers that recompute takes keep little and those it leaves alone much: copies of both.
TEST(SimulatedLayouts, CopyWhatRecomputeTakesAndWhatItLeavesAlone) {
  Apart apart;
  for (const char* engine : {"megatron_ddp", "shardwise"}) {
    for (const std::int32_t pp : {1, 2}) {
      for (const std::int32_t interval : {2, 3}) {
        Plan plan = example(engine, 8);
        plan.layout = {.pp = pp, .dp_shard = 8 / pp};
        plan.layout.zero_stage = 1;
        plan.layout.offload_activations = true;
        plan.layout.recompute = Recompute::full;
        plan.layout.recompute_interval = interval;
        apart.expect_near(plan);
      }
    }
  }
  EXPECT_EQ(apart.near(), 8);
}

// Copies to the host that set the pace anyway hide what the first passes wait for their parameters.
TEST(SimulatedLayouts, WaitForUpdatedParametersAndForTheHostAtOnce) {
  for (const std::int32_t pp : {1, 2}) {
    Plan plan = mixture_example("megatron_fsdp", 64);
    plan.layout = {.tp = 4, .cp = 2, .pp = pp, .ep = 2, .dp_shard = 8 / pp};
    plan.layout.zero_stage = 1;
    plan.layout.micro_batch_size = 2;
    plan.layout.sequence_parallel = plan.layout.offload_activations = true;
    Apart apart;
    apart.expect_near(plan);
    plan.layout.offload_activations = false;
    apart.expect_near(plan);
    EXPECT_EQ(apart.drawn(), 2);
  }
}

}  // namespace
}  // namespace shardwise::sim
