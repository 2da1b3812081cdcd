#include "gui/models/compare/metrics_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {

namespace {

/// Adds the points of one part of the steps, in their order.
void add_part(std::span<const MetricsStep> part, double (*value)(const MetricsStep&),
              MetricsCourse& course) {
  const MetricsStep* least = nullptr;
  const MetricsStep* most = nullptr;
  const MetricsStep* none = nullptr;
  for (const MetricsStep& each : part) {
    if (!std::isfinite(value(each))) {
      none = &each;
      continue;
    }
    if (least == nullptr || value(each) < value(*least)) least = &each;
    if (most == nullptr || value(each) > value(*most)) most = &each;
  }
  std::array<const MetricsStep*, 3> points = {least, most == least ? nullptr : most, none};
  std::ranges::sort(points);
  for (const MetricsStep* const each : points) {
    if (each == nullptr) continue;
    course.step.push_back(static_cast<double>(each->step));
    course.value.push_back(value(*each));
  }
  if (least == nullptr) return;
  course.least = std::min(course.least, value(*least));
  course.most = std::max(course.most, value(*most));
}

}  // namespace

MetricsCourse course_of(std::span<const MetricsStep> steps, double (*value)(const MetricsStep&)) {
  MetricsCourse course;
  const std::size_t parts = std::min(steps.size(), kMostPoints);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * steps.size() / parts;
    const std::size_t end = (part + 1) * steps.size() / parts;
    add_part(steps.subspan(begin, end - begin), value, course);
  }
  return course;
}

void put_steps(MetricsState& metrics, std::span<const MetricsStep> steps) {
  metrics.steps = steps.size();
  metrics.median = median_time(steps);
  metrics.times = course_of(steps, [](const MetricsStep& each) { return each.time.value(); });
  metrics.losses = course_of(steps, [](const MetricsStep& each) { return each.loss; });
  if (steps.empty()) return;
  metrics.first = steps.front();
  metrics.last = steps.back();
}

Seconds median_time(std::span<const MetricsStep> steps) {
  if (steps.empty()) return {};
  std::vector<Seconds> times;
  times.reserve(steps.size());
  for (const MetricsStep& each : steps) times.push_back(each.time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::string metrics_text(const MetricsState& metrics, Seconds predicted) {
  if (metrics.steps == 0) return "no step yet";
  const MetricsStep& last = metrics.last;
  const Seconds median = metrics.median;
  std::string text = fmt::format(
      "{} {}, the last {}, median {}", format_count(static_cast<std::int64_t>(metrics.steps)),
      metrics.steps == 1 ? "step" : "steps", format_seconds(last.time), format_seconds(median));
  if (median > Seconds(0)) {
    text += fmt::format(", predicted {}", signed_percent(predicted / median - 1));
  }
  return text + fmt::format(", loss {:.4g}", last.loss);
}

}  // namespace shardwise::view
