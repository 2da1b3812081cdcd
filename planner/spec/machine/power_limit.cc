#include "planner/spec/machine/power_limit.h"

#include <fmt/format.h>

#include "planner/spec/text/check.h"

namespace shardwise {

GpuSpec under_power_limit(GpuSpec gpu, double watts) {
  SHARDWISE_CHECK(watts > 0 && watts <= gpu.tdp_watts,
                  fmt::format("{} W of {}", watts, gpu.tdp_watts));
  if (watts == gpu.tdp_watts) return gpu;
  const double share = watts / gpu.tdp_watts;
  for (GemmCurve& curve : gpu.gemm) {
    curve.sustained_share *= share;
    curve.sustained_measured = false;
    curve.sustained_source = fmt::format(
        "the clock in long runs at {:.0f} W, in proportion to a limit of {:.0f} W "
        "(docs/compute_fits.md, Long runs)",
        gpu.tdp_watts, watts);
  }
  gpu.label += fmt::format(", limited to {:.0f} W", watts);
  gpu.tdp_watts = watts;
  return gpu;
}

}  // namespace shardwise
