#pragma once

#include "planner/cost/kernels/kernel_traits.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Memory traffic of an operation that only moves bytes, and the kernels it takes.
struct Traffic {
  double forward = 0;  // bytes read and written per element of the operation's width
  double backward = 0;
  int forward_kernels = 1;
  int backward_kernels = 1;
};

/// Traits of PyTorch's own modules beyond the operations that a model has.
struct EagerModules {
  bool composed_activation = false;  // ActivationFunction::gelu_new
  bool autocast = false;             // the residual stream, norms and powers are in fp32
};

/// Bytes per element of `op` as `kernels` execute it: how often its tensors are read and written
/// depends on what is fused. docs/layer_time.md has the table with the count behind each entry. For
/// dispatch and combine an element is one of a routed token's copy; for the loss one logit.
/// \param ours  of our kernels: on a GPU products add to the residual stream, apply the tanh GELU
///   and its gradient, and a norm keeps its copy of the stream in the pass that reads it
///   (executor/kernels/compute/compute.h)
/// \param bytes   of an activation element
/// \param modules  matter with kernels eager
/// \pre kernels != by_engine, settled_job(job); ours is {} but with kernels planned
Traffic traffic_of(const OperationSpec& op, const JobSpec& job, Kernels kernels,
                   const KernelTraits& ours, double bytes, const EagerModules& modules = {});

/// Bytes of an element of the optimizer's state in a step: gradient norm, clipping, update. Without
/// the norm where that is shared_norm_traffic's. \param adamw  of steps_with_torch_adamw() engines
double optimizer_traffic(const JobSpec& job, Kernels kernels,
                         AdamwKernel adamw = AdamwKernel::fused);

/// Bytes of an element for the gradient's norm where ranks that hold the same gradients share them
/// out, so that each element is squared once: our kernels. 0 where every rank squares all that it
/// updates.
double shared_norm_traffic(Kernels kernels);

/// Work of a kernel that moves bytes; copies for all that has no kind.
MoveKind move_kind(const OperationSpec& op);

/// Traffic of casting the operands of an 8-bit product, in bytes an element of each: read for the
/// largest value and read again where the scale follows from it, written as they are and transposed
/// for the products of the backward pass. All zero for the other precisions.
/// Source: pytorch/ao@05980129:torchao/testing/training/roofline_utils.py,
/// get_tensor_memory_traffic_ovhd_s (nothing fused with the kernel before). Transformer Engine
/// casts and transposes in one pass, and casts weights once a step (user guide, "Using FP8 and
/// FP4", is_first_microbatch): `weight_step` then, and no `weight_*`.
struct CastTraffic {
  double input = 0;            // of a product, forward
  double gradient = 0;         // of its output, backward
  double weight_forward = 0;   // each micro-batch
  double weight_backward = 0;  // each micro-batch
  double weight_step = 0;      // once a step
  int input_kernels = 0;
  int gradient_kernels = 0;
  int weight_forward_kernels = 0;
  int weight_backward_kernels = 0;
};
/// \param precision  of the product
CastTraffic cast_traffic(DType precision, const JobSpec& job, Kernels kernels);

}  // namespace shardwise
