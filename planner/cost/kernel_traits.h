#pragma once

#include "planner/spec/gpu_spec.h"

namespace shardwise {

/// How our kernels work on a device, as far as prices, ledgers and programs differ by it. Kernels
/// of CPUs have none of this; there are no others than those and CUDA's.
struct KernelTraits {
  /// Products add to the residual stream and apply GELU and its gradient, and sum fp32 gradients of
  /// biases: on a CPU passes of their own.
  bool epilogues = false;
  /// Gradients of a later micro-batch are added to the sum of the earlier ones as they are made,
  /// where both have one type and the engine makes no tensors of them. Elsewhere they are made
  /// from zeros beside it and then added, ((g0 + g1) + g2) + …, the fold that a reduction over
  /// ranks makes too: 12 B more to move for each fp32 element.
  bool adds_to_sums = false;
};
KernelTraits kernel_traits(const GpuSpec& gpu);

}  // namespace shardwise
