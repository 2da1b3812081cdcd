#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/spec/plan.h"
#include "planner/spec/units.h"

namespace shardwise::view {

/// The best layout of the question on one count of GPUs.
struct ScalingPoint {
  std::int64_t gpus = 0;
  std::optional<Layout> layout;  // nothing where none fits
  std::string why_none;
  Bytes memory;
  Seconds time;
  double mfu = 0;
  double tokens_per_s = 0;
  double dollars_per_1e9_tokens = 0;
};

/// Searches smaller and larger clusters of the plan's machines, the batch of a step as it is, and
/// says each as it is found. Asked to stop, it ends before the next.
void scale(const Plan& plan, const std::stop_token& stop,
           const std::function<void(ScalingPoint)>& found);

/// Tokens a second for each GPU, of the first point's that has a layout; 0 where there is none.
double efficiency(const std::vector<ScalingPoint>& points, const ScalingPoint& point);

}  // namespace shardwise::view
