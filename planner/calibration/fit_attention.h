#pragma once

#include <string>
#include <vector>

#include "planner/calibration/measurements.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// Fits the curve of one pass to half of the points of that pass and judges it on the other half.
/// There is one rate for each mean of qk and v head dimensions that occurs. Points that also wrote
/// K and V to a cache have that part fitted and kept apart.
/// \param points     in `dtype`; at least 8 of `pass`
/// \param fitted_on  data set and commit, kept with the curve
AttentionCurve fit_attention(const GpuSpec& gpu, Pass pass,
                             const std::vector<AttentionPoint>& points,
                             const std::string& fitted_on, DType dtype = DType::bf16);

/// Fits the memory-bound curve in the same way. \param points  at least 8
MemoryBoundCurve fit_memory_bound(const GpuSpec& gpu, const std::vector<MovePoint>& points,
                                  const std::string& fitted_on);

}  // namespace shardwise
