#include <algorithm>

#include "planner/cost/compute.h"

namespace shardwise {

Seconds memory_bound_time(const GpuSpec& gpu, Bytes moved, MoveKind kind, Pass pass) {
  if (moved.value() <= 0) return Seconds(0);
  const MemoryBoundCurve& curve = gpu.memory_bound;
  double share = curve.bandwidth_share;
  const auto rate = std::ranges::find(curve.rates, kind, &MoveRate::kind);
  if (rate != curve.rates.end()) {
    share = pass == Pass::forward ? rate->forward_share : rate->backward_share;
  }
  return curve.start + (moved / gpu.memory_bandwidth) / share;
}

}  // namespace shardwise
