#include "gui/models/metrics_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/format.h"
#include "planner/spec/signed_format.h"

namespace shardwise::view {

Seconds median_time(const std::vector<MetricsStep>& steps) {
  if (steps.empty()) return {};
  std::vector<Seconds> times;
  times.reserve(steps.size());
  for (const MetricsStep& each : steps) times.push_back(each.time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::string metrics_text(const MetricsState& metrics, Seconds predicted) {
  if (metrics.steps.empty()) return "no step yet";
  const MetricsStep& last = metrics.steps.back();
  const Seconds median = median_time(metrics.steps);
  std::string text = fmt::format("{} {}, the last {}, median {}",
                                 format_count(static_cast<std::int64_t>(metrics.steps.size())),
                                 metrics.steps.size() == 1 ? "step" : "steps",
                                 format_seconds(last.time), format_seconds(median));
  if (median > Seconds(0)) {
    text += fmt::format(", predicted {}", signed_percent(predicted / median - 1));
  }
  return text + fmt::format(", loss {:.4g}", last.loss);
}

}  // namespace shardwise::view
