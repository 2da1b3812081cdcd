#pragma once

#include <cstdint>
#include <span>

#include "executor/kernels/element.h"

namespace shardwise::exec {

/// Rules by which weights are updated.
struct OptimizerRules {
  double peak_learning_rate = 3e-4;
  double least_learning_rate = 3e-5;  // of the cosine's end
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices; vectors (norms, biases) do not decay
  double clip_norm = 1.0;     // of all gradients together; 0 = not clipped
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  // the cosine ends here, counted from the first step; 0 = constant
};

/// The rate of step 0, 1, …: a line up to the peak over the warm-up, then half a cosine down to the
/// least, then the least.
double learning_rate(const OptimizerRules& rules, std::int64_t step);

/// Factor of gradients so that their norm is at most clip_norm; 1 where that is 0.
double clip_factor(double clip_norm, double norm);

/// One step's numbers, the same on every rank, as a device reads them.
struct AdamStep {
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float gradient_scale = 1;         // clipping
  float moment_correction = 1;      // 1 / (1 - beta1^t)
  float root_correction = 1;        // 1 / sqrt(1 - beta2^t)
  float decay = 1;                  // 1 - learning_rate x weight_decay, of what decays
  std::uint64_t rounding_seed = 0;  // of the run and the step, where weights are rounded by chance
};
/// Rules of step 0, 1, … without clipping.
AdamStep adam_step(const OptimizerRules& rules, std::int64_t step);

/// Updates weights of one decay group, element by element, in fp32: where an element lies and what
/// lies beside it changes nothing. All spans have one size. `decay` is 1 - learning rate x decay.
/// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (arXiv:1711.05101),
/// algorithm 2.
void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           std::span<float> weights, std::span<float> first, std::span<float> second);

/// fp32 weights in halves (weight_halves.h).
struct WeightHalves {
  std::span<Bf16> weights;
  std::span<std::uint16_t> remainders;
};
/// Updates weights in halves: joined they have the bits that fp32 weights would have.
/// \param second  with the signs that weights in halves give them
void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           const WeightHalves& weights, std::span<float> first, std::span<float> second);

/// bf16 weights without a wider copy, of a tensor.
struct RoundedWeights {
  std::span<Bf16> weights;
  std::uint64_t tensor = 0;  // a number of its own
  std::uint64_t first = 0;   // number in it of the first weight
};
/// Updates bf16 weights, rounded stochastically (stochastic_rounding.h).
void adamw(const AdamStep& step, float decay, std::span<const float> gradients,
           const RoundedWeights& weights, std::span<float> first, std::span<float> second);

/// main = the weights. All spans have one size.
void join_weights(std::span<const Bf16> weights, std::span<const std::uint16_t> remainders,
                  std::span<const float> second, std::span<float> main);
/// The remainders of main weights, and their signs in second moments that have none.
void split_weights(std::span<const float> main, std::span<std::uint16_t> remainders,
                   std::span<float> second);
/// Clears the signs.
void clear_signs(std::span<float> second);

}  // namespace shardwise::exec
