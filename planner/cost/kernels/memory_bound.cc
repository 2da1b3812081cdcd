#include "planner/cost/kernels/compute.h"

namespace shardwise {

namespace {

/// Of this kind and type, else the first of the kind; null when there is none.
const MoveRate* rate_of(const MemoryBoundCurve& curve, MoveKind kind, DType dtype) {
  const MoveRate* found = nullptr;
  for (const MoveRate& rate : curve.rates) {
    if (rate.kind != kind) continue;
    if (rate.dtype == dtype) return &rate;
    if (found == nullptr) found = &rate;
  }
  return found;
}

}  // namespace

Seconds memory_bound_time(const GpuSpec& gpu, Bytes moved, MoveKind kind, Pass pass, DType dtype) {
  if (moved.value() <= 0) return Seconds(0);
  const MemoryBoundCurve& curve = gpu.memory_bound;
  double share = curve.bandwidth_share;
  if (const MoveRate* rate = rate_of(curve, kind, dtype)) {
    share = pass == Pass::forward ? rate->forward_share : rate->backward_share;
  }
  return curve.start + (moved / gpu.memory_bandwidth) / share;
}

}  // namespace shardwise
