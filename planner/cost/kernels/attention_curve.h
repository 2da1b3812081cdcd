#pragma once

#include "planner/cost/kernels/compute.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// Limits of a GPU for an attention kernel; rates per second.
struct AttentionLimits {
  double flops = 0;
  double bytes = 0;
  double processors = 1;
  double element_bytes = 2;
};

AttentionLimits attention_limits(const GpuSpec& gpu, DType dtype);

/// Seconds of one call by the curve of its pass. Never below flops / limits.flops nor below the
/// bytes of q, k, v and o / limits.bytes.
/// Source: docs/compute.md, Attention.
double attention_seconds(const AttentionCurve& curve, const AttentionLimits& limits,
                         const AttentionWork& work, Pass pass);

/// The time that the source of the curve would have measured, with what else it timed.
double measured_attention_seconds(const AttentionCurve& curve, const AttentionLimits& limits,
                                  const AttentionWork& work, Pass pass);

}  // namespace shardwise
