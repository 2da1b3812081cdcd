#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
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

/// Plans with layouts drawn from the whole search space of an engine.
template <class Visit>
void draw(Plan plan, int count, std::uint32_t seed, Visit&& visit) {
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
    draw(example(engine, 16), 12, ++seed, [&](const Plan& plan) {
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
/// \param change  makes another layout of one that was drawn
template <class Change, class Visit>
void draw_pipelines(Plan plan, int count, std::uint32_t seed, Change&& change, Visit&& visit) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  Sampler sampler(question, seed);
  for (int tries = 0; tries < 2'000'000 && count > 0; ++tries) {
    plan.layout = sampler.draw();
    const Layout& layout = plan.layout;
    change(plan.layout);
    if (layout.pp == 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) continue;
    if (!sampler.legal(plan.layout) || !is_itself(plan)) continue;
    --count;
    visit(plan);
  }
}

/// How far simulator and closed form are apart in drawn layouts: at most 1 %.
class Apart {
 public:
  void expect_near(const Plan& plan) {
    const double apart = simulated(plan) / unslowed(plan) - 1;
    EXPECT_NEAR(apart, 0, 0.01) << plan.engine.name << " " << plan.model.name << " "
                                << plan.cluster.gpus << " " << text_of(plan.layout);
    ++drawn_;
    if (std::abs(apart) <= 0.001) ++near_;
    farthest_ = std::max(farthest_, std::abs(apart));
  }
  int drawn() const { return drawn_; }
  int near() const { return near_; }
  void record() const {
    ::testing::Test::RecordProperty("drawn", drawn_);
    ::testing::Test::RecordProperty("within_a_thousandth", near_);
    ::testing::Test::RecordProperty("farthest_percent", std::to_string(100 * farthest_));
  }

 private:
  int drawn_ = 0;
  int near_ = 0;  // within 0.1 %
  double farthest_ = 0;
};

// Dense models and experts under every engine, on two nodes and on eight.
TEST(SimulatedLayouts, AreNearTheClosedFormInPipelines) {
  Apart apart;
  std::uint32_t seed = 20261123;
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {16, 64}) {
      for (const std::string& engine : engine_names()) {
        const Plan plan = experts ? mixture_example(engine, gpus) : example(engine, gpus);
        const auto as_drawn = [](Layout&) {};
        draw_pipelines(plan, 8, ++seed, as_drawn,
                       [&](const Plan& drawn) { apart.expect_near(drawn); });
      }
    }
  }
  apart.record();
  EXPECT_GT(apart.drawn(), 60);
  EXPECT_GT(apart.near(), apart.drawn() * 9 / 10);
}

/// Makes a drawn layout one of 8 or 16 stages, of which the first and the last may have few layers.
class Lengthen {
 public:
  Lengthen(std::int64_t gpus, std::uint32_t seed) : gpus_(gpus), random_(seed) {}

  void operator()(Layout& l) {
    l.pp = any(8, 16);
    l.vpp = any(1, any(2, l.vpp));
    l.tp = any(1, 2);
    l.cp = any(1, 2);
    l.dp_replicate = any(1, 2);
    l.ep = std::min(l.ep, 4);
    l.etp = 1;
    l.dp_shard = static_cast<std::int32_t>(
        std::max<std::int64_t>(1, gpus_ / (std::int64_t{l.pp} * l.tp * l.cp * l.dp_replicate)));
    l.micro_batch_size = 1;
    l.first_stage_layers = any(0, any(1, 2));
    l.last_stage_layers = any(0, any(1, 2));
    l.overlap_grad_reduce = l.overlap_param_gather = true;
  }

 private:
  std::int32_t any(std::int32_t a, std::int32_t b) { return random_() % 2 == 0 ? a : b; }

  std::int64_t gpus_;
  std::mt19937 random_;
};

TEST(SimulatedLayouts, AreNearTheClosedFormInLongAndUnevenPipelines) {
  constexpr std::int64_t kGpus = 128;
  Apart apart;
  std::uint32_t seed = 20261125;
  for (const bool experts : {false, true}) {
    for (const std::string& engine : engine_names()) {
      Plan plan = experts ? mixture_example(engine, kGpus) : example(engine, kGpus);
      // Stages of two layers and of three, or ones that the ends leave equal.
      plan.model = experts ? test::mixture(34, 2048, 16, 16, 2, 1024, 0)
                           : test::llama(34, 4096, 14336, 32, 8, 32000);
      plan.job.global_batch_size = 64;
      Lengthen lengthen(kGpus, ++seed);
      draw_pipelines(plan, 8, seed, lengthen, [&](const Plan& drawn) { apart.expect_near(drawn); });
    }
  }
  apart.record();
  EXPECT_GT(apart.drawn(), 80);
  EXPECT_GT(apart.near(), apart.drawn() * 9 / 10);
}

// Dense models and experts, on two nodes and on eight.
TEST(SimulatedLayouts, AreNearTheClosedFormWhereOnlyDataParallelTrafficOverlaps) {
  std::uint32_t seed = 20261122;
  Apart apart;
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {16, 64}) {
      for (const std::string& engine : engine_names()) {
        const Plan plan = experts ? mixture_example(engine, gpus) : example(engine, gpus);
        draw(plan, 6000, ++seed, [&](const Plan& drawn) {
          const Layout& layout = drawn.layout;
          if (layout.pp > 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) return;
          if (is_itself(drawn)) apart.expect_near(drawn);
        });
      }
    }
  }
  apart.record();
  EXPECT_GT(apart.drawn(), 300);
  EXPECT_GT(apart.near(), apart.drawn() * 8 / 10);
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
