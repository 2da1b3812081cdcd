#pragma once

#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// A GPU whose power its owner limits below what its maker rates it for (`nvidia-smi -pl`). In long
/// runs arithmetic of matrix products is slower in proportion: at such clocks the voltage is at its
/// floor, so that power goes with the clock. Attention and kernels that move bytes draw less and
/// are left as they are. Energy is that of the limit.
/// \pre 0 < watts <= gpu.tdp_watts
/// Source: docs/compute_fits.md, Long runs.
GpuSpec under_power_limit(GpuSpec gpu, double watts);

}  // namespace shardwise
