#pragma once

#include "planner/spec/dtype.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/model_spec.h"

namespace shardwise {

/// Memory traffic of an operation that only moves bytes, and the kernels it takes.
struct Traffic {
  double forward = 0;  // bytes read and written per element of the operation's width
  double backward = 0;
  int forward_kernels = 1;
  int backward_kernels = 1;
};

/// Bytes per element of `op` as `kernels` execute it: how often its tensors are read and written
/// depends on what is fused. docs/time.md has the table with the count behind each entry. For
/// dispatch and combine an element is one of a routed token's copy; for the loss one logit.
/// \param bytes   of an activation element
/// \pre kernels != by_engine
Traffic traffic_of(const OperationSpec& op, const JobSpec& job, Kernels kernels, double bytes);

/// Elementwise kernels around a low-precision GEMM: the inputs are read once and written in fp8 as
/// they are and transposed. Bytes per element of each GEMM operand, forward (activation) and
/// backward (gradient of the output). Zero for the other precisions.
/// Source: Transformer Engine, user guide, "Using FP8": weights and activations are cast and
/// transposed for the backward products.
double cast_traffic(DType precision);

}  // namespace shardwise
