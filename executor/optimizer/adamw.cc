#include "executor/optimizer/adamw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "executor/optimizer/stochastic_rounding.h"
#include "executor/optimizer/weight_halves.h"

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

/// What a step has for all elements of a decay group.
struct Factors {
  Factors(const AdamStep& s, float of_decay)
      : beta1(s.beta1),
        beta2(s.beta2),
        rest1(1 - s.beta1),
        rest2(1 - s.beta2),
        rate(s.learning_rate * s.moment_correction),
        gradient_scale(s.gradient_scale),
        root_correction(s.root_correction),
        epsilon(s.epsilon),
        decay(of_decay) {}
  float beta1, beta2, rest1, rest2, rate, gradient_scale, root_correction, epsilon, decay;
};

SHARDWISE_INLINE float updated(const Factors& f, float gradient, float weight, float& first,
                               float& second) {
  const float g = gradient * f.gradient_scale;
  const float mean = f.beta1 * first + f.rest1 * g;
  const float square = f.beta2 * second + f.rest2 * g * g;
  const float root = std::sqrt(square) * f.root_correction + f.epsilon;
  first = mean;
  second = square;
  return weight * f.decay - f.rate * mean / root;
}

SHARDWISE_VECTOR_CLONES void update(const Factors& f, std::size_t count, const float* gradients,
                                    float* weights, float* first, float* second) {
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = updated(f, gradients[i], weights[i], first[i], second[i]);
  }
}

SHARDWISE_INLINE std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
SHARDWISE_INLINE float number(std::uint32_t x) { return std::bit_cast<float>(x); }

SHARDWISE_VECTOR_CLONES void join(std::size_t count, const Bf16* weights,
                                  const std::uint16_t* remainders, const float* second,
                                  float* main) {
  for (std::size_t i = 0; i < count; ++i) {
    main[i] = number(joined_weight(weights[i], remainders[i], bits(second[i])));
  }
}

SHARDWISE_VECTOR_CLONES void split(std::size_t count, const float* main, std::uint16_t* remainders,
                                   float* second) {
  for (std::size_t i = 0; i < count; ++i) {
    remainders[i] = remainder_of(bits(main[i]));
    second[i] = number(square_beside(bits(main[i]), bits(second[i])));
  }
}

SHARDWISE_VECTOR_CLONES void widen(std::size_t count, const Bf16* weights, float* main) {
  for (std::size_t i = 0; i < count; ++i) main[i] = to_float(weights[i]);
}

SHARDWISE_VECTOR_CLONES void round_by_chance(std::size_t count, const float* main,
                                             std::uint64_t key, std::uint64_t first,
                                             Bf16* weights) {
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = stochastically_rounded(bits(main[i]), rounding_draw(key, first + i));
  }
}

SHARDWISE_VECTOR_CLONES void round_weights(std::size_t count, const float* main, Bf16* weights) {
  for (std::size_t i = 0; i < count; ++i) weights[i] = from_float<Bf16>(main[i]);
}

/// f(at, main) with memory for the fp32 weights from number `at` on.
template <class F>
void for_blocks_of(std::size_t count, F f) {
  constexpr std::size_t kBlock = 1024;  // in the first cache with all that it is made of
  std::array<float, kBlock> block;      // NOLINT(*-member-init): f writes it
  for (std::size_t at = 0; at < count; at += kBlock) {
    f(at, std::span<float>(block.data(), std::min(kBlock, count - at)));
  }
}

}  // namespace

void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           std::span<float> weights, std::span<float> first, std::span<float> second) {
  update(Factors(step, decay), weights.size(), gradients.data(), weights.data(), first.data(),
         second.data());
}

void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           const WeightHalves& weights, std::span<float> first, std::span<float> second) {
  for_blocks_of(gradients.size(), [&](std::size_t at, std::span<float> main) {
    const std::size_t count = main.size();
    const std::span<Bf16> narrow = weights.weights.subspan(at, count);
    const std::span<std::uint16_t> remainders = weights.remainders.subspan(at, count);
    const std::span<float> squares = second.subspan(at, count);
    join_weights(narrow, remainders, squares, main);
    clear_signs(squares);
    adamw(step, decay, gradients.subspan(at, count), main, first.subspan(at, count), squares);
    round_weights(count, main.data(), narrow.data());
    split_weights(main, remainders, squares);
  });
}

void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           const RoundedWeights& weights, std::span<float> first, std::span<float> second) {
  const std::uint64_t key = rounding_key(step.rounding_seed, weights.tensor);
  for_blocks_of(gradients.size(), [&](std::size_t at, std::span<float> main) {
    const std::size_t count = main.size();
    Bf16* const narrow = weights.weights.data() + at;
    widen(count, narrow, main.data());
    adamw(step, decay, gradients.subspan(at, count), main, first.subspan(at, count),
          second.subspan(at, count));
    round_by_chance(count, main.data(), key, weights.first + at, narrow);
  });
}

void join_weights(std::span<const Bf16> weights, std::span<const std::uint16_t> remainders,
                  std::span<const float> second, std::span<float> main) {
  join(main.size(), weights.data(), remainders.data(), second.data(), main.data());
}

void split_weights(std::span<const float> main, std::span<std::uint16_t> remainders,
                   std::span<float> second) {
  split(main.size(), main.data(), remainders.data(), second.data());
}

void clear_signs(std::span<float> second) {
  for (float& each : second) each = number(square_alone(bits(each)));
}

}  // namespace shardwise::exec
