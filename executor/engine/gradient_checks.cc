#include "executor/engine/gradient_checks.h"

#include <fmt/format.h>

#include <cmath>

namespace shardwise::exec {
namespace {

std::string wrong_with(const GradientCheckState& found) {
  if (std::isnan(found.norm)) return "contain NaN";
  if (std::isinf(found.norm)) return "are infinite";
  return fmt::format("have norm {:.4g}, more than {:.0f} times the largest before, {:.4g}",
                     found.norm, kLargeGradientThreshold, found.largest);
}

}  // namespace

std::string what_is_wrong(const GradientCheckState& found, std::int64_t step) {
  return fmt::format("this rank's gradients of bucket {} in step {} {}", found.bucket, step,
                     wrong_with(found));
}

}  // namespace shardwise::exec
