#pragma once

#include <vector>

#include "planner/calibration/measurements.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise::cli {

/// Prints how far the curves of `gpu` are from tables, without a fit: |predicted - measured| /
/// measured in the median and at the 95th percentile, and the median with its sign. A table of
/// `short_runs` is held against what its kind of source would have measured, operators and
/// attention of training against the prediction itself.
void print_gpu_check(const GpuSpec& gpu, const std::vector<GemmPoint>& short_runs,
                     const OperatorPoints& operators, const std::vector<AttentionPoint>& attention,
                     const std::vector<MovePoint>& moves);

}  // namespace shardwise::cli
