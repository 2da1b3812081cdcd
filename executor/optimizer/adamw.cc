#include "executor/optimizer/adamw.h"

#include <cmath>
#include <numbers>

#include "executor/kernels/element.h"

namespace shardwise::exec {

double learning_rate(const OptimizerRules& rules, std::int64_t step) {
  if (step < rules.warmup_steps) {
    return rules.peak_learning_rate * static_cast<double>(step + 1) /
           static_cast<double>(rules.warmup_steps);
  }
  if (rules.decay_steps <= rules.warmup_steps) return rules.peak_learning_rate;
  if (step >= rules.decay_steps) return rules.least_learning_rate;
  const double done = static_cast<double>(step - rules.warmup_steps) /
                      static_cast<double>(rules.decay_steps - rules.warmup_steps);
  const double share = 0.5 * (1 + std::cos(std::numbers::pi * done));
  return rules.least_learning_rate + share * (rules.peak_learning_rate - rules.least_learning_rate);
}

double clip_factor(double clip_norm, double norm) {
  if (clip_norm <= 0 || norm <= clip_norm) return 1;
  return clip_norm / norm;
}

AdamStep adam_step(const OptimizerRules& rules, std::int64_t step) {
  const auto t = static_cast<double>(step + 1);
  AdamStep s;
  s.learning_rate = static_cast<float>(learning_rate(rules, step));
  s.beta1 = static_cast<float>(rules.beta1);
  s.beta2 = static_cast<float>(rules.beta2);
  s.epsilon = static_cast<float>(rules.epsilon);
  s.moment_correction = static_cast<float>(1 / (1 - std::pow(rules.beta1, t)));
  s.root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(rules.beta2, t)));
  s.decay = 1 - s.learning_rate * static_cast<float>(rules.weight_decay);
  return s;
}

namespace {

SHARDWISE_VECTOR_CLONES void update(const AdamStep& s, float decay, std::size_t count,
                                    const float* gradients, float* weights, float* first,
                                    float* second) {
  const float rest1 = 1 - s.beta1;
  const float rest2 = 1 - s.beta2;
  const float rate = s.learning_rate * s.moment_correction;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradients[i] * s.gradient_scale;
    const float mean = s.beta1 * first[i] + rest1 * g;
    const float square = s.beta2 * second[i] + rest2 * g * g;
    const float root = std::sqrt(square) * s.root_correction + s.epsilon;
    first[i] = mean;
    second[i] = square;
    weights[i] = weights[i] * decay - rate * mean / root;
  }
}

}  // namespace

void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           std::span<float> weights, std::span<float> first, std::span<float> second) {
  update(step, decay, weights.size(), gradients.data(), weights.data(), first.data(),
         second.data());
}

}  // namespace shardwise::exec
