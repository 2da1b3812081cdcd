#include "tests/executor/engine/stand_in.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/replica_check.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise::exec::test {
namespace {

constexpr float kShare = 0.1F;

struct Sizes {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t elements() const { return tokens * hidden; }
};

/// E of weights and the stream, G of gradients.
template <class E, class G>
class StandIn : public Layer {
 public:
  StandIn(const ModelSpec& model, const LayerSpec& kind, Sizes sizes)
      : kind_(kind), tied_(model.tie_word_embeddings), sizes_(sizes) {}

  LayerBytes bytes() const override {
    return {sizes_.elements() * static_cast<std::int64_t>(sizeof(float)), 64, 128, 64};
  }

  void forward(const ForwardPass& pass, const Issue&) const override {
    E* const x = reinterpret_cast<E*>(pass.stream);
    float* const saved = reinterpret_cast<float*>(pass.saved);
    for (std::int64_t i = 0; i < sizes_.elements(); ++i) {
      if (kind_.role == LayerRole::embedding) {
        const std::int64_t row = pass.inputs[i / sizes_.hidden];
        saved[i] = static_cast<float>(row);
        x[i] = tensor(pass.weights, 0)[row * sizes_.hidden + i % sizes_.hidden];
      } else {
        saved[i] = to_float(x[i]);
        if (kind_.role == LayerRole::block)
          x[i] = from_float<E>(saved[i] * factor(pass.weights, i));
      }
    }
  }

  void backward(const BackwardPass& pass, const Issue&) const override {
    if (kind_.role == LayerRole::head) return head(pass);
    E* const dx = reinterpret_cast<E*>(pass.stream);
    const float* const saved = reinterpret_cast<const float*>(pass.saved);
    for (std::int64_t i = 0; i < sizes_.elements(); ++i) {
      if (kind_.role == LayerRole::embedding) {
        const auto row = static_cast<std::int64_t>(saved[i]);
        add_rounded(gradient(pass, 0)[row * sizes_.hidden + i % sizes_.hidden], to_float(dx[i]));
        continue;
      }
      for (std::size_t p = 0; p < kind_.parameters.size(); ++p) {
        add_rounded(gradient(pass, p)[index(p, i)], kShare * to_float(dx[i]) * saved[i]);
      }
      dx[i] = from_float<E>(to_float(dx[i]) * factor(pass.weights, i));
    }
  }

 private:
  static const E* tensor(std::span<const std::byte* const> weights, std::size_t p) {
    return reinterpret_cast<const E*>(weights[p]);
  }
  static G* gradient(const BackwardPass& pass, std::size_t p) {
    return reinterpret_cast<G*>(pass.gradients[p]);
  }
  std::int64_t index(std::size_t p, std::int64_t i) const {
    return (i * 7 + i / 5) % kind_.parameters[p].elements();
  }
  float factor(std::span<const std::byte* const> weights, std::int64_t i) const {
    float sum = 1;
    for (std::size_t p = 0; p < kind_.parameters.size(); ++p) {
      sum += kShare * to_float(tensor(weights, p)[index(p, i)]);
    }
    return sum;
  }

  /// Half the squared distance of norm * x . row(target) from 1.
  void head(const BackwardPass& pass) const {
    const E* const norm = tensor(pass.weights, 0);
    const std::size_t matrix = tied_ ? kind_.parameters.size() : 1;
    const float* const x = reinterpret_cast<const float*>(pass.saved);
    E* const dx = reinterpret_cast<E*>(pass.stream);
    for (std::int64_t t = 0; t < sizes_.tokens; ++t) {
      if (pass.targets[t] == kIgnored) {
        std::fill_n(dx + t * sizes_.hidden, sizes_.hidden, E{});
        continue;
      }
      const std::int64_t begin = pass.targets[t] * sizes_.hidden;
      const E* const row = tensor(pass.weights, matrix) + begin;
      G* const drow = gradient(pass, matrix) + begin;
      const float* const xt = x + t * sizes_.hidden;
      float score = 0;
      for (std::int64_t h = 0; h < sizes_.hidden; ++h) {
        score += to_float(norm[h]) * xt[h] * to_float(row[h]);
      }
      const float error = score - 1;
      pass.loss->loss += 0.5 * static_cast<double>(error) * static_cast<double>(error);
      ++pass.loss->tokens;
      const float g = error * *pass.loss_scale;
      for (std::int64_t h = 0; h < sizes_.hidden; ++h) {
        dx[t * sizes_.hidden + h] = from_float<E>(g * to_float(norm[h]) * to_float(row[h]));
        add_rounded(drow[h], g * to_float(norm[h]) * xt[h]);
        add_rounded(gradient(pass, 0)[h], g * xt[h] * to_float(row[h]));
      }
    }
  }

  const LayerSpec& kind_;
  bool tied_;
  Sizes sizes_;
};

}  // namespace

LayerKernels stand_in_kernels(const Plan& plan) {
  const Sizes sizes = {plan.layout.micro_batch_size * plan.job.sequence_length,
                       plan.model.hidden_size};
  const StateTypes types = state_types(lowering_context(plan, Granularity::layer, false));
  return {[&plan, sizes, types](const LayerSpec& kind) -> std::unique_ptr<Layer> {
            if (types.compute == DType::fp32) {
              return std::make_unique<StandIn<float, float>>(plan.model, kind, sizes);
            }
            if (types.made == DType::fp32) {
              return std::make_unique<StandIn<Bf16, float>>(plan.model, kind, sizes);
            }
            return std::make_unique<StandIn<Bf16, Bf16>>(plan.model, kind, sizes);
          },
          [](std::byte*, const Issue&) {}};
}

Layout data_parallel_layout(int zero_stage, int dp_shard, int dp_replicate) {
  Layout layout;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.dp_shard = dp_shard;
  layout.dp_replicate = dp_replicate;
  return layout;
}

Plan laptop_plan(const std::string& engine, const Layout& layout, std::int64_t num_microbatches,
                 bool tied) {
  Plan plan;
  // Sizes that no number of ranks divides, so that every unit is padded.
  plan.model = shardwise::test::llama(3, 18, 26, 3, 1, 257);
  plan.model.tie_word_embeddings = tied;
  if (tied) {
    for (LayerSpec& kind : plan.model.kinds) {
      if (kind.role == LayerRole::head) kind.parameters.pop_back();
    }
  }
  plan.engine = *find_engine(engine);
  plan.layout = layout;
  plan.cluster = *with_gpus(*find_cluster("laptop"), layout.world());
  plan.job.precision = DType::fp32;
  plan.job.loss = LossKernel::chunked;
  plan.job.sequence_length = 16;
  plan.job.global_batch_size = layout.dp() * layout.micro_batch_size * num_microbatches;
  return plan;
}

Plan deep_plan(const Layout& layout, std::int64_t num_microbatches, bool tied) {
  Plan plan = laptop_plan("shardwise", layout, num_microbatches, tied);
  ModelSpec deep = shardwise::test::llama(6, 18, 26, 3, 1, 257);
  deep.kinds = plan.model.kinds;
  deep.tie_word_embeddings = tied;
  plan.model = std::move(deep);
  EXPECT_TRUE(check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).empty());
  return plan;
}

TokenSequences laptop_text(const Plan& plan) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + (i * i / 7 + i) % 23);
  return *TokenSequences::cut(TokenStream(text), plan.job.sequence_length, 257, 3, "text");
}

Curve train(const Plan& plan, std::int64_t steps, TrainOptions options,
            const MakeWorld& make_world) {
  const TokenSequences data = laptop_text(plan);
  double& rate = options.optimizer.peak_learning_rate;
  if (rate == OptimizerRules{}.peak_learning_rate) rate = 0.01;
  Curve curve;
  AbortSignal abort;
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  run_ranks(
      static_cast<int>(plan.layout.world()), abort,
      [&](World& threads) {
        const std::unique_ptr<World> made = make_world ? make_world(threads) : nullptr;
        World& world = made ? *made : threads;
        Trainer trainer(plan, world, device, arenas[static_cast<std::size_t>(world.rank())], abort,
                        options, stand_in_kernels(plan));
        trainer.initialise();
        ReplicaCheck replicas(trainer, plan.layout, world, device,
                              arenas[static_cast<std::size_t>(world.rank())], abort);
        for (std::int64_t s = 0; s < steps; ++s) {
          replicas.before_step();
          const StepResult result = trainer.step(data);
          replicas.after_step(trainer.next_step());
          if (world.rank() != 0) continue;
          curve.losses.push_back(result.loss);
          curve.norms.push_back(result.gradient_norm);
        }
        for (const StepSpans* ran : {&trainer.first_step(), &trainer.median_step()}) {
          EXPECT_EQ(ran->spans.size(), trainer.program(ran->program).operations.size());
        }
      },
      std::chrono::seconds(60));
  return curve;
}

}  // namespace shardwise::exec::test
