#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/host_and_gpu.h"

namespace shardwise::exec {

// An fp32 main weight as two halves: the bf16 weight that layers read, to nearest, ties to even,
// and the lower 16 bits of the fp32, its remainder. A bf16 whose last bit is 0 is the nearest of
// 65537 numbers, one more than a remainder tells apart: the first and the last lie half way to its
// neighbours and both end in 0x8000. The sign of AdamW's second moment, which is never negative,
// tells them: set where the main weight has the bits of the bf16, clear where rounding took it on
// to the next. So joining gives the same bits for everything but NaNs, which stay NaNs, whatever
// their payload. An infinite bf16 has the remainders of the largest fp32.
// Source of remainders: NVIDIA/apex:apex/contrib/optimizers/distributed_fused_adam.py,
// store_param_remainders, where ties round away from zero.

/// Bits of an fp32 main weight. \param square  bits of its second moment
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE std::uint32_t joined_weight(Bf16 weight,
                                                                    std::uint16_t remainder,
                                                                    std::uint32_t square) {
  const std::uint32_t rounded_up = (remainder & 0x8000U) << 1U;
  const std::uint32_t tie_below = (square >> 31U) << 16U;
  return (std::uint32_t{weight.bits} << 16U) + remainder - rounded_up + tie_below;
}

/// The remainder of an fp32 main weight beside what it is in bf16.
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE std::uint16_t remainder_of(std::uint32_t main) {
  return static_cast<std::uint16_t>(main);
}

/// A second moment's bits with the sign that they have beside a main weight. \pre sign clear
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE std::uint32_t square_beside(std::uint32_t main,
                                                                    std::uint32_t square) {
  constexpr std::uint32_t kLowerHalfAndLastBit = 0x1ffffU;
  return square | static_cast<std::uint32_t>((main & kLowerHalfAndLastBit) == 0x8000U) << 31U;
}

/// A second moment's bits without it.
SHARDWISE_HOST_AND_GPU SHARDWISE_INLINE std::uint32_t square_alone(std::uint32_t square) {
  return square & 0x7fffffffU;
}

}  // namespace shardwise::exec
