#include "planner/cost/compute.h"

namespace shardwise {

Seconds memory_bound_time(const GpuSpec& gpu, Bytes moved) {
  if (moved.value() <= 0) return Seconds(0);
  return gpu.memory_bound.start + (moved / gpu.memory_bandwidth) / gpu.memory_bound.bandwidth_share;
}

}  // namespace shardwise
