#pragma once

#include <cstdint>

#include "executor/data/random.h"
#include "executor/kernels/element.h"
#include "executor/kernels/host_and_gpu.h"

namespace shardwise::exec {

// Stochastic rounding of fp32 to bf16: to one of the two neighbours, up with a probability that is
// the share of the way to it, so that the mean is the number itself. What is drawn depends on the
// run's seed, the step, the tensor and the element's number in it alone: not on the device, nor on
// who holds the element.
// Source: Gupta et al., "Deep Learning with Limited Numerical Precision" (arXiv:1502.02551),
// section 3.

/// Key that the elements of a tensor share in a step.
/// \param of_step  AdamStep::rounding_seed  \param of_tensor  AdamShard::tensor
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE std::uint64_t rounding_key(std::uint64_t of_step,
                                                                   std::uint64_t of_tensor) {
  return mixed(of_step ^ of_tensor);
}

/// 16 random bits.
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE std::uint32_t rounding_draw(std::uint64_t key,
                                                                    std::uint64_t element) {
  return static_cast<std::uint32_t>(mixed(key + 0x9e3779b97f4a7c15ULL * (element + 1)) >> 48U);
}

/// The bits of an fp32 rounded by a draw. A NaN stays one, an infinity itself.
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE Bf16 stochastically_rounded(std::uint32_t bits,
                                                                    std::uint32_t draw) {
  const bool is_number = (bits & 0x7fffffffU) <= 0x7f800000U;
  const std::uint32_t upper = is_number ? (bits + draw) >> 16U : (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>(upper)};
}

}  // namespace shardwise::exec
