#include <cmath>

#include "planner/cost/kernels/attention_curve.h"
#include "planner/cost/kernels/compute.h"

namespace shardwise {

AttentionLimits attention_limits(const GpuSpec& gpu, DType dtype) {
  AttentionLimits limits;
  limits.flops = gpu.peak(dtype).value();
  limits.bytes = gpu.memory_bandwidth.value();
  limits.processors = gpu.sm_count;
  limits.element_bytes = bits_of(dtype) / 8.0;
  return limits;
}

Seconds attention_time(const GpuSpec& gpu, DType dtype, const AttentionWork& work, Pass pass) {
  const AttentionLimits limits = attention_limits(gpu, dtype);
  if (limits.flops <= 0) return Seconds(HUGE_VAL);
  return Seconds(attention_seconds(gpu.attention_curve(dtype, pass), limits, work, pass));
}

}  // namespace shardwise
