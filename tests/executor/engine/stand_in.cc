#include "tests/executor/engine/stand_in.h"

#include <mutex>

#include "executor/comm/thread_world.h"
#include "planner/engines/engines.h"
#include "planner/spec/catalogue.h"
#include "planner/spec/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise::exec::test {
namespace {

constexpr float kShare = 0.1F;

struct Sizes {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t bytes() const { return tokens * hidden * static_cast<std::int64_t>(sizeof(float)); }
};

float* floats(std::byte* at) { return reinterpret_cast<float*>(at); }
const float* floats(const std::byte* at) { return reinterpret_cast<const float*>(at); }

class StandIn : public Layer {
 public:
  StandIn(const ModelSpec& model, const LayerSpec& kind, Sizes sizes)
      : kind_(kind), tied_(model.tie_word_embeddings), sizes_(sizes) {}

  LayerBytes bytes() const override { return {sizes_.bytes(), 64, 128, 64}; }

  void forward(const ForwardPass& pass, Workers&) const override {
    float* const x = floats(pass.stream);
    float* const saved = floats(pass.saved);
    for (std::int64_t i = 0; i < sizes_.tokens * sizes_.hidden; ++i) {
      if (kind_.role == LayerRole::embedding) {
        const std::int64_t row = pass.inputs[i / sizes_.hidden];
        saved[i] = static_cast<float>(row);
        x[i] = floats(pass.weights[0])[row * sizes_.hidden + i % sizes_.hidden];
      } else if (kind_.role == LayerRole::block) {
        saved[i] = x[i];
        x[i] *= factor(pass.weights, i);
      } else {
        saved[i] = x[i];
      }
    }
  }

  void backward(const BackwardPass& pass, Workers&) const override {
    if (kind_.role == LayerRole::head) return head(pass);
    float* const dx = floats(pass.stream);
    const float* const saved = floats(pass.saved);
    for (std::int64_t i = 0; i < sizes_.tokens * sizes_.hidden; ++i) {
      if (kind_.role == LayerRole::embedding) {
        const auto row = static_cast<std::int64_t>(saved[i]);
        pass.gradients[0][row * sizes_.hidden + i % sizes_.hidden] += dx[i];
        continue;
      }
      for (std::size_t p = 0; p < kind_.parameters.size(); ++p) {
        pass.gradients[p][index(p, i)] += kShare * dx[i] * saved[i];
      }
      dx[i] *= factor(pass.weights, i);
    }
  }

 private:
  std::int64_t index(std::size_t p, std::int64_t i) const {
    return (i * 7 + i / 5) % kind_.parameters[p].elements();
  }
  float factor(std::span<const std::byte* const> weights, std::int64_t i) const {
    float sum = 1;
    for (std::size_t p = 0; p < kind_.parameters.size(); ++p) {
      sum += kShare * floats(weights[p])[index(p, i)];
    }
    return sum;
  }

  /// Half the squared distance of norm * x . row(target) from 1.
  void head(const BackwardPass& pass) const {
    const float* const norm = floats(pass.weights[0]);
    const std::size_t matrix = tied_ ? kind_.parameters.size() : 1;
    const float* const table = floats(pass.weights[matrix]);
    const float* const x = floats(pass.saved);
    float* const dx = floats(pass.stream);
    for (std::int64_t t = 0; t < sizes_.tokens; ++t) {
      const float* const row = table + pass.targets[t] * sizes_.hidden;
      float* const drow = pass.gradients[matrix] + pass.targets[t] * sizes_.hidden;
      const float* const xt = x + t * sizes_.hidden;
      float score = 0;
      for (std::int64_t h = 0; h < sizes_.hidden; ++h) score += norm[h] * xt[h] * row[h];
      const float error = score - 1;
      pass.loss->loss += 0.5 * static_cast<double>(error) * static_cast<double>(error);
      ++pass.loss->tokens;
      const float g = error * pass.loss_scale;
      for (std::int64_t h = 0; h < sizes_.hidden; ++h) {
        dx[t * sizes_.hidden + h] = g * norm[h] * row[h];
        drow[h] += g * norm[h] * xt[h];
        pass.gradients[0][h] += g * xt[h] * row[h];
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
  return {[&plan, sizes](const LayerSpec& kind) {
            return std::make_unique<StandIn>(plan.model, kind, sizes);
          },
          [](std::byte*) {}};
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

Curve train(const Plan& plan, std::int64_t steps) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + (i * i / 7 + i) % 23);
  const TokenSequences data =
      *TokenSequences::cut(TokenStream(text), plan.job.sequence_length, 257, 3, "text");
  TrainOptions options;
  options.optimizer.peak_learning_rate = 0.01;
  Curve curve;
  AbortSignal abort;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  run_ranks(
      static_cast<int>(plan.layout.world()), abort,
      [&](World& world) {
        Trainer trainer(plan, world, arenas[static_cast<std::size_t>(world.rank())], abort, options,
                        stand_in_kernels(plan));
        trainer.initialise();
        for (std::int64_t s = 0; s < steps; ++s) {
          const StepResult result = trainer.step(data);
          if (world.rank() != 0) continue;
          curve.losses.push_back(result.loss);
          curve.norms.push_back(result.gradient_norm);
        }
      },
      std::chrono::seconds(60));
  return curve;
}

}  // namespace shardwise::exec::test
