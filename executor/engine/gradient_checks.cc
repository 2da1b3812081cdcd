#include "executor/engine/gradient_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace shardwise::exec {
namespace {

constexpr double kThreshold = 10;
constexpr int kSamples = 100;

}  // namespace

void GradientChecks::check(std::int64_t step, std::size_t bucket, const ConstNumbers& gradients) {
  if (!any()) return;
  double squares = 0;
  for_blocks(gradients, [&](std::size_t, std::span<const float> block) {
    for (const float each : block) squares += static_cast<double>(each) * static_cast<double>(each);
  });
  const double norm = std::sqrt(squares);
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(
        fmt::format("this rank's gradients of bucket {} in step {} {}", bucket, step, what));
  };
  if (rules_.nan && !std::isfinite(norm)) {
    fail(std::isnan(norm) ? "contain NaN" : "are infinite");
  }
  if (!rules_.large || !std::isfinite(norm)) return;
  if (samples_ >= kSamples && norm > kThreshold * largest_) {
    fail(fmt::format("have norm {:.4g}, more than {:.0f} times the largest before, {:.4g}", norm,
                     kThreshold, largest_));
  }
  if (samples_ < kSamples) ++samples_;
  largest_ = std::max(largest_, norm);
}

}  // namespace shardwise::exec
