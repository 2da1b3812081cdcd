// Tensor parallelism: ranks that share layers train the model that one rank trains.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/replica_check.h"
#include "executor/engine/trainer.h"
#include "planner/legality/legality.h"
#include "planner/lowering/checks/check_ranks.h"
#include "planner/lowering/lower_regions.h"
#include "planner/question/layout_words.h"
#include "planner/search/search.h"
#include "planner/spec/plan/names.h"
#include "tests/executor/engine/small_plans.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

constexpr int kSteps = 10;

/// What a run gives: losses and norms by step, and, where ranks have gradients whole, the sum of
/// the squares of each tensor's of the last step.
struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::map<std::string, double> squares;
  std::map<std::string, std::vector<float>> weights;  // where they are whole, after the last step
};

/// Adds this rank's parts of the gradients: what all ranks have whole only of the first, and a
/// table that two stages have only of its own.
void add_squares(const Trainer& trainer, const Arena& arena, std::map<std::string, double>& sums) {
  const RankState& state = trainer.state();
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const TensorView gradients = state.view(arena, 0, u).gradients;
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      if (tensor.copy || !tensor.cut.leads(state.place().tp_rank)) continue;
      const auto* values = reinterpret_cast<const float*>(gradients.data) + tensor.begin;
      for (std::int64_t i = 0; i < tensor.elements; ++i) {
        sums[tensor.name] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
    }
  }
}

void add_weights(const Trainer& trainer, const Arena& arena,
                 std::map<std::string, std::vector<float>>& whole) {
  const RankState& state = trainer.state();
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const TensorView weights = state.view(arena, 0, u).weights;
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      std::vector<float> part(static_cast<std::size_t>(tensor.elements));
      cast({reinterpret_cast<std::byte*>(part.data()), part.size(), DType::fp32},
           weights.part(static_cast<std::size_t>(tensor.begin), part.size()));
      put_part(tensor, state.place().tp_rank, part, whole[tensor.name]);
    }
  }
}

/// \param ignored  a token that no target counts for; none: all count
Trained train_whole(const Plan& plan, int steps = kSteps, std::int64_t ignored = kIgnored) {
  const TokenSequences data = few_tokens(plan);
  TrainOptions options;
  options.ignored_token = ignored;
  // Adam divides small gradients by themselves: at a high rate steps amplify how sums are rounded.
  options.optimizer.peak_learning_rate = 0.0003;
  Trained trained;
  std::mutex mutex;
  AbortSignal abort;
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  run_ranks(
      static_cast<int>(plan.layout.world()), abort,
      [&](World& world) {
        Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
        Trainer trainer(plan, world, device, arena, abort, options, kernels_of(plan, world.rank()));
        trainer.initialise();
        ReplicaCheck replicas(trainer, plan.layout, world, device, arena, abort);
        for (int s = 0; s < steps; ++s) {
          replicas.before_step();
          const StepResult result = trainer.step(data);
          replicas.after_step(trainer.next_step());
          if (world.rank() != 0) continue;
          trained.losses.push_back(result.loss);
          trained.norms.push_back(result.gradient_norm);
        }
        const DataParallelPlace& place = trainer.state().place();
        if (plan.layout.zero_stage == 0 && place.stage_rank == 0) {
          const std::scoped_lock lock(mutex);
          add_squares(trainer, arena, trained.squares);
          add_weights(trainer, arena, trained.weights);
        }
      },
      std::chrono::seconds(120));
  return trained;
}

/// Losses within 1e-5 of one another's, norms within 1e-4, and so the norm of every tensor's
/// gradient.
void expect_near(const Trained& split, const Trained& alone) {
  ASSERT_EQ(split.losses.size(), alone.losses.size());
  for (std::size_t s = 0; s < alone.losses.size(); ++s) {
    EXPECT_NEAR(split.losses[s], alone.losses[s], 1e-5 * alone.losses[s]) << "step " << s;
    EXPECT_NEAR(split.norms[s], alone.norms[s], 1e-4 * alone.norms[s]) << "step " << s;
  }
  if (split.squares.empty()) return;
  ASSERT_EQ(split.squares.size(), alone.squares.size());
  for (const auto& [name, squares] : alone.squares) {
    // Some gradients are nothing but rounding: of keys that are normed before all are alike.
    const double near = 1e-4 * std::sqrt(squares) + 1e-9 * alone.norms.back();
    EXPECT_NEAR(std::sqrt(split.squares.at(name)), std::sqrt(squares), near) << name;
  }
}

TEST(TensorParallel, TrainsEveryKindOfModelAsOneRankDoes) {
  for (const char* model : {"gpt2-tiny", "llama-tiny", "qwen3-tiny"}) {
    SCOPED_TRACE(model);
    const Trained alone = train_whole(small_plan_of(model, over(1)));
    EXPECT_LT(alone.losses.back(), alone.losses.front());
    expect_near(train_whole(small_plan_of(model, over(2))), alone);
  }
}

Layout with_stages(Layout layout, std::int32_t pp,
                   PipelineSchedule schedule = PipelineSchedule::one_f_one_b,
                   std::int32_t vpp = 1) {
  layout.pp = pp;
  layout.vpp = vpp;
  layout.schedule = schedule;
  return layout;
}

Layout in_sequence(Layout layout) {
  layout.sequence_parallel = true;
  return layout;
}

TEST(SequenceParallel, TrainsEveryKindOfModelAsOneRankDoes) {
  for (const char* model : {"gpt2-tiny", "llama-tiny", "qwen3-tiny"}) {
    SCOPED_TRACE(model);
    const Trained alone = train_whole(small_plan_of(model, over(1)));
    expect_near(train_whole(small_plan_of(model, in_sequence(over(2)))), alone);
  }
}

// As many ranks as heads, and more than heads of keys and values.
TEST(SequenceParallel, TrainsOverManyRanks) {
  const Trained alone = train_whole(small_plan_of("llama-tiny", over(1)), 4);
  for (const int tp : {4, 8}) {
    expect_near(train_whole(small_plan_of("llama-tiny", in_sequence(over(tp))), 4), alone);
  }
}

// What is computed again, or gathered again, has the bits of what was kept.
TEST(SequenceParallel, RecomputesTheSame) {
  for (const char* model : {"gpt2-tiny", "qwen3-tiny"}) {
    const Layout layout = in_sequence(over(2));
    const Trained kept = train_whole(small_plan_of(model, layout), 3);
    Layout full = layout;
    full.recompute = Recompute::full;
    EXPECT_EQ(train_whole(small_plan_of(model, full), 3).losses, kept.losses) << model;
    Plan plan = small_plan_of(model, layout);
    plan.job.recompute_operations = {"attention_norm", "self_attn.core", "mlp_norm",
                                     "mlp.activation"};
    EXPECT_EQ(train_whole(plan, 3).losses, kept.losses) << model;
    plan.job.recompute_operations = {"mlp_norm"};
    EXPECT_EQ(train_whole(plan, 3).losses, kept.losses) << model;
  }
}

TEST(SequenceParallel, TrainsInPipelinesBesideEveryWayOfSharding) {
  const Trained alone = train_whole(small_plan_of("gpt2-tiny", over(1, 2, 0), 4), 4);
  for (const int zero_stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero_stage);
    const Layout layout = in_sequence(over(2, 2, zero_stage));
    expect_near(train_whole(small_plan_of("gpt2-tiny", layout, 4), 4), alone);
    expect_near(train_whole(small_plan_of("gpt2-tiny", with_stages(layout, 2), 4), 4), alone);
  }
}

TEST(TensorParallel, TrainsOverAsManyRanksAsThereAreHeads) {
  for (const char* model : {"gpt2-tiny", "llama-tiny"}) {
    SCOPED_TRACE(model);
    const Trained alone = train_whole(small_plan_of(model, over(1)), 3);
    expect_near(train_whole(small_plan_of(model, over(4)), 3), alone);
  }
}

// Two ranks have the same head of keys and values, and the same bits of it after every step.
TEST(TensorParallel, TrainsOverMoreRanksThanKeyHeads) {
  const Trained alone = train_whole(small_plan_of("llama-tiny", over(1)), 4);
  expect_near(train_whole(small_plan_of("llama-tiny", over(8)), 4), alone);
  expect_near(train_whole(small_plan_of("llama-tiny", over(8, 2, 3), 1), 4), alone);
}

TEST(TensorParallel, TrainsBesideEveryWayOfSharding) {
  const Trained alone = train_whole(small_plan_of("qwen3-tiny", over(1, 2, 0)), 4);
  const Trained whole = train_whole(small_plan_of("qwen3-tiny", over(2, 2, 0)), 4);
  expect_near(whole, alone);
  for (const int zero_stage : {1, 2, 3}) {
    for (const bool each : {true, false}) {
      Layout layout = over(2, 2, zero_stage);
      layout.reduce_every_microbatch = each;
      expect_near(train_whole(small_plan_of("qwen3-tiny", layout), 4), alone);
    }
  }
  Layout replicas = over(2, 2, 3);
  replicas.dp_replicate = 2;
  Layout without = over(1, 2, 3);
  without.dp_replicate = 2;
  for (const bool outer : {false, true}) {
    replicas.outer_shards_optimizer = without.outer_shards_optimizer = outer;
    expect_near(train_whole(small_plan_of("qwen3-tiny", replicas, 1), 3),
                train_whole(small_plan_of("qwen3-tiny", without, 1), 3));
  }
}

// What is computed again has the bits of what was kept.
TEST(TensorParallel, RecomputesTheSame) {
  for (const char* model : {"gpt2-tiny", "qwen3-tiny"}) {
    const Trained kept = train_whole(small_plan_of(model, over(2)), 3);
    Layout layout = over(2);
    layout.recompute = Recompute::full;
    EXPECT_EQ(train_whole(small_plan_of(model, layout), 3).losses, kept.losses) << model;
    Plan plan = small_plan_of(model, over(2));
    plan.job.recompute_operations = {"attention_norm", "self_attn.core", "mlp_norm",
                                     "mlp.activation"};
    EXPECT_EQ(train_whole(plan, 3).losses, kept.losses) << model;
  }
}

// Embedding and head have one table, cut over ranks, on two stages.
TEST(TensorParallel, TrainsInEveryPipelineAsOneRankDoes) {
  using enum PipelineSchedule;
  for (const char* model : {"gpt2-tiny", "llama-tiny", "qwen3-tiny"}) {
    SCOPED_TRACE(model);
    const Trained alone = train_whole(small_plan_of(model, over(1), 4));
    EXPECT_LT(alone.losses.back(), alone.losses.front());
    expect_near(train_whole(small_plan_of(model, with_stages(over(2), 2), 4)), alone);
  }
  const Trained alone = train_whole(small_plan_of("gpt2-tiny", over(1), 4), 3);
  for (const Layout& layout :
       {with_stages(over(2), 2, gpipe), with_stages(over(2), 2, one_f_one_b, 2),
        with_stages(over(2), 2, looped_bfs, 2), with_stages(over(4), 2),
        with_stages(over(2), 4, gpipe)}) {
    SCOPED_TRACE(fmt::format("{}, tp {}, pp {}, vpp {}", name_of(layout.schedule), layout.tp,
                             layout.pp, layout.vpp));
    expect_near(train_whole(small_plan_of("gpt2-tiny", layout, 4), 3), alone);
  }
}

TEST(TensorParallel, TrainsInPipelinesBesideEveryWayOfSharding) {
  const Trained alone = train_whole(small_plan_of("gpt2-tiny", over(1, 2, 0), 3), 4);
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const bool each : {true, false}) {
      SCOPED_TRACE(fmt::format("ZeRO-{}, {}", zero_stage, each));
      Layout layout = with_stages(over(2, 2, zero_stage), 2);
      layout.reduce_every_microbatch = each;
      expect_near(train_whole(small_plan_of("gpt2-tiny", layout, 3), 4), alone);
    }
  }
}

TEST(TensorParallel, RecomputesTheSameInPipelines) {
  Layout layout = with_stages(over(2), 2);
  const Trained kept = train_whole(small_plan_of("qwen3-tiny", layout, 3), 3);
  layout.recompute = Recompute::full;
  EXPECT_EQ(train_whole(small_plan_of("qwen3-tiny", layout, 3), 3).losses, kept.losses);
}

// Ranks of data parallelism have other numbers of tokens, those of tensor parallelism the same.
TEST(TensorParallel, DividesGradientsByTheTokensThatCount) {
  const auto of = [](const Layout& layout) {
    Plan plan = small_plan_of("llama-tiny", layout, 2);
    plan.job.calculate_per_token_loss = true;
    return train_whole(plan, 3, 'c');
  };
  const Trained alone = of(over(1, 2, 1));
  expect_near(of(over(2, 2, 1)), alone);
  expect_near(of(with_stages(over(2, 2, 1), 2)), alone);
  EXPECT_NE(train_whole(small_plan_of("llama-tiny", over(1, 2, 1), 2), 3, 'c').losses,
            alone.losses);
}

TEST(TensorParallel, TrainsInBf16WithinItsRounding) {
  const auto of = [](const Layout& layout) {
    Plan plan = small_plan_of("llama-tiny", layout);
    plan.job.precision = DType::bf16;
    return train_whole(plan, 2).losses;
  };
  const std::vector<double> alone = of(over(1));
  for (const Layout& layout : {over(2), in_sequence(over(2))}) {
    const std::vector<double> split = of(layout);
    for (std::size_t s = 0; s < alone.size(); ++s) {
      EXPECT_NEAR(split[s], alone[s], alone[s] * 10 / 512) << "step " << s;
    }
  }
}

// Each element is rounded by its number in the whole tensor. Other numbers would draw another
// neighbour for about a third of them; sums in another order do for few.
TEST(TensorParallel, RoundsWeightsByChanceAsOneRankDoes) {
  const auto of = [](const Layout& layout) {
    Plan plan = small_plan_of("gpt2-tiny", layout);
    plan.job.precision = plan.job.main_dtype = DType::bf16;
    return train_whole(plan, 1);
  };
  const Trained alone = of(over(1));
  const Trained split = of(over(2));
  ASSERT_EQ(split.weights.size(), alone.weights.size());
  for (const auto& [name, weights] : alone.weights) {
    const std::vector<float>& other = split.weights.at(name);
    ASSERT_EQ(other.size(), weights.size()) << name;
    if (name.ends_with(".bias")) continue;  // gradients of keys' are nothing but rounding
    std::size_t same = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) same += weights[i] == other[i] ? 1U : 0U;
    EXPECT_GT(static_cast<double>(same), 0.9 * static_cast<double>(weights.size())) << name;
  }
}

/// Every plan of 2 to 8 ranks that the rules have for a batch of four sequences and a model of four
/// blocks, of these degrees and switches.
std::vector<Plan> all_meshes() {
  std::vector<Plan> all;
  Plan plan = small_plan_of("gpt2-tiny", over(1), 4);
  bool more = true;
  for (std::size_t number = 0; more; ++number) {
    std::size_t rest = number;
    const auto take = [&rest](auto first, auto... others) {
      const std::array values = {first, others...};
      const std::size_t at = rest % values.size();
      rest /= values.size();
      return values[at];
    };
    using enum PipelineSchedule;
    Layout layout = over(take(1, 2, 4), take(1, 2, 4), take(0, 1, 2, 3));
    layout.dp_replicate = take(1, 2);
    layout.outer_shards_optimizer = take(false, true);
    layout.reduce_every_microbatch = take(true, false);
    layout.recompute = take(Recompute::none, Recompute::full);
    layout.pp = take(1, 2, 4);
    layout.vpp = take(1, 2);
    layout.schedule = take(one_f_one_b, gpipe, looped_bfs);
    layout.sequence_parallel = take(false, true);
    more = rest == 0;
    if (!more || layout.world() == 1 || layout.world() > 8) continue;
    plan.layout = layout;
    plan.cluster = *with_gpus(plan.cluster, layout.world());
    const bool whole = 4 % layout.dp() == 0;
    const Diagnostics illegal =
        check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
    if (whole && illegal.empty()) all.push_back(plan);
  }
  return all;
}

// Whatever takes how long.
TEST(MeshGrid, EveryStepEnds) {
  for (const Plan& mesh : all_meshes()) {
    for (const StepKind step : {StepKind::first, StepKind::steady}) {
      EXPECT_EQ(check_ranks(lower_regions(mesh, step), mesh.layout), "")
          << in_words(differing_fields(Layout(), mesh.layout));
    }
  }
}

// A sample of them; all: SHARDWISE_WHOLE_DRAWS=1 build/dev/bin/executor_tensor_parallel_test
// --gtest_filter='MeshGrid.*'
TEST(MeshGrid, TrainsAsOneRankDoes) {
  const bool whole = std::getenv("SHARDWISE_WHOLE_DRAWS") != nullptr;
  std::vector<Plan> meshes = all_meshes();
  std::mt19937 random(20261130);
  std::ranges::shuffle(meshes, random);
  const std::size_t sample = shardwise::test::kSanitized ? 6 : 30;
  EXPECT_GT(meshes.size(), 10 * sample);
  if (!whole) meshes.erase(meshes.begin() + static_cast<std::ptrdiff_t>(sample), meshes.end());
  const Trained alone = train_whole(small_plan_of("gpt2-tiny", over(1), 4), 2);
  for (const Plan& mesh : meshes) {
    SCOPED_TRACE(in_words(differing_fields(Layout(), mesh.layout)));
    expect_near(train_whole(mesh, 2), alone);
  }
}

}  // namespace
}  // namespace shardwise::exec::test
