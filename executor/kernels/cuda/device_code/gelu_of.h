#pragma once

#include "executor/kernels/cuda/device_code/device.h"
#include "executor/kernels/gelu.h"

namespace shardwise::exec::cuda {

inline constexpr float kGeluCubic = 0.044715F;
inline constexpr float kGeluSlope = 0.797884561F;    // sqrt(2 / pi)
inline constexpr float kGeluDensity = 0.398942280F;  // 1 / sqrt(2 pi)
inline constexpr float kInverseRoot2 = 0.707106781F;

inline __device__ float tanh_of(float x) { return 1.0F - 2.0F / (1.0F + exponential(2.0F * x)); }

/// gelu(x), or gelu'(x) d.
template <Gelu kKind, bool kBackward>
__device__ float gelu_of(float x, float d) {
  if constexpr (kKind == Gelu::tanh) {
    const float t = tanh_of(kGeluSlope * (x + kGeluCubic * x * x * x));
    if constexpr (!kBackward) return 0.5F * x * (1.0F + t);
    return d * (0.5F * (1.0F + t) +
                0.5F * x * (1.0F - t * t) * kGeluSlope * (1.0F + 3.0F * kGeluCubic * x * x));
  } else {
    const float below = 0.5F * (1.0F + erff(x * kInverseRoot2));
    if constexpr (!kBackward) return x * below;
    return d * (below + x * kGeluDensity * exponential(-0.5F * x * x));
  }
}
template <bool kBackward>
__device__ float gelu_of(Gelu kind, float x, float d) {
  if (kind == Gelu::tanh) return gelu_of<Gelu::tanh, kBackward>(x, d);
  return gelu_of<Gelu::erf, kBackward>(x, d);
}

}  // namespace shardwise::exec::cuda
