#pragma once

#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Traits of our kernels on a device, as far as prices, ledgers and programs differ by it. Kernels
/// of CPUs have none of this; there are no others than those and CUDA's.
struct KernelTraits {
  /// Products add to the residual stream and apply GELU and its gradient, and sum gradients of
  /// biases: on a CPU passes of their own.
  bool epilogues = false;
  /// The tanh GELU alone rides there, of ungated activations; what is exact is a pass of its own.
  bool fuses_activation = false;
  /// Gradients of a later micro-batch are added to the sum of the earlier ones as they are made,
  /// where both have one type and the engine makes no tensors of them. Elsewhere they are made
  /// from zeros beside it and then added, ((g0 + g1) + g2) + …, the fold that a reduction over
  /// ranks makes too: 12 B more to move for each fp32 element.
  bool adds_to_sums = false;
  /// Collectives take pieces of one length, so that units of state end where the last piece does.
  bool whole_pieces = false;
  /// Rows of the head's logits are chosen by price; elsewhere by the rule of operation_sizes.h.
  bool chooses_loss_rows = false;
};
KernelTraits kernel_traits(const GpuSpec& gpu);
/// Traits that include what depends on the model: its activation.
KernelTraits kernel_traits(const GpuSpec& gpu, ActivationFunction activation);

}  // namespace shardwise
