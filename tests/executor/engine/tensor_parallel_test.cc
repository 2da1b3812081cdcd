// Tensor parallelism: ranks that share layers train the model that one rank trains.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/replica_check.h"
#include "executor/engine/trainer.h"
#include "tests/executor/engine/small_plans.h"

namespace shardwise::exec::test {
namespace {

constexpr int kSteps = 10;

/// What a run gives: losses and norms by step, and, where ranks have gradients whole, the sum of
/// the squares of each tensor's of the last step.
struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::map<std::string, double> squares;
};

/// Adds this rank's parts of the gradients: what all ranks have whole only of the first.
void add_squares(const Trainer& trainer, const Arena& arena, std::map<std::string, double>& sums) {
  const RankState& state = trainer.state();
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const TensorView gradients = state.view(arena, 0, u).gradients;
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      if (!tensor.cut.cut() && state.place().tp_rank > 0) continue;
      const auto* values = reinterpret_cast<const float*>(gradients.data) + tensor.begin;
      for (std::int64_t i = 0; i < tensor.elements; ++i) {
        sums[tensor.name] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
    }
  }
}

Trained train_whole(const Plan& plan, int steps = kSteps) {
  const TokenSequences data = few_tokens(plan);
  TrainOptions options;
  options.optimizer.peak_learning_rate = 0.003;
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

TEST(TensorParallel, TrainsOverAsManyRanksAsThereAreHeads) {
  for (const char* model : {"gpt2-tiny", "llama-tiny"}) {
    SCOPED_TRACE(model);
    const Trained alone = train_whole(small_plan_of(model, over(1)), 3);
    expect_near(train_whole(small_plan_of(model, over(4)), 3), alone);
  }
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

TEST(TensorParallel, TrainsInBf16WithinItsRounding) {
  const auto of = [](const Layout& layout) {
    Plan plan = small_plan_of("llama-tiny", layout);
    plan.job.precision = DType::bf16;
    return train_whole(plan, 2).losses;
  };
  const std::vector<double> alone = of(over(1));
  const std::vector<double> split = of(over(2));
  for (std::size_t s = 0; s < alone.size(); ++s) {
    EXPECT_NEAR(split[s], alone[s], alone[s] * 10 / 512) << "step " << s;
  }
}

}  // namespace
}  // namespace shardwise::exec::test
