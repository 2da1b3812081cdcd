#include "gui/models/explore/why_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/models/memory/memory_model.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr double kLeastDifference = 0.002;  // of the larger value: what gets no step of its own

/// Largest changes first; what is little becomes the last step.
Waterfall fold(double winner, double other, std::vector<WaterStep> steps) {
  Waterfall fall{winner, other, {}};
  const double least = kLeastDifference * std::max(std::abs(winner), std::abs(other));
  double rest = 0;
  for (WaterStep& step : steps) {
    if (std::abs(step.change) >= least) {
      fall.steps.push_back(std::move(step));
    } else {
      rest += step.change;
    }
  }
  std::ranges::stable_sort(fall.steps, std::ranges::greater(),
                           [](const WaterStep& step) { return std::abs(step.change); });
  if (rest != 0) fall.steps.push_back({"smaller parts", rest});
  return fall;
}

}  // namespace

Waterfall time_waterfall(const StepReport& winner, const StepReport& other) {
  std::vector<WaterStep> steps;
  for (const TimePart& part : kTimeParts) {
    const Seconds change = other.time.*part.field - winner.time.*part.field;
    steps.push_back({std::string(part.label), change.value()});
  }
  return fold(winner.time.total().value(), other.time.total().value(), std::move(steps));
}

Waterfall memory_waterfall(const StepReport& winner, const StepReport& other) {
  const GroupedBytes before = peak_groups(winner);
  const GroupedBytes after = peak_groups(other);
  std::vector<WaterStep> steps;
  Bytes sum_before;
  Bytes sum_after;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    sum_before += before[g];
    sum_after += after[g];
    steps.push_back({std::string(label_of(static_cast<MemoryGroup>(g))),
                     static_cast<double>((after[g] - before[g]).value())});
  }
  return fold(static_cast<double>(sum_before.value()), static_cast<double>(sum_after.value()),
              std::move(steps));
}

std::string verdict_text(const StepReport& winner, const StepReport& other) {
  const Verdict& verdict = other.verdict;
  if (verdict.fit == Fit::does_not_fit) {
    return fmt::format("does not fit: {} over on stage {}", format_bytes(verdict.over()),
                       verdict.worst_stage);
  }
  const double slower = other.step_time / winner.step_time - 1;
  const Bytes more = verdict.point - winner.verdict.point;
  const std::string pace = slower == 0 ? "as fast"
                                       : fmt::format("{} {}", format_percent(std::abs(slower)),
                                                     slower > 0 ? "slower" : "faster");
  const std::string memory =
      fmt::format("{} {} memory than the best", format_bytes(Bytes(std::abs(more.value()))),
                  more < Bytes(0) ? "less" : "more");
  const std::string risk = verdict.fit == Fit::at_risk ? ", its upper bound does not fit" : "";
  return fmt::format("{}, {}{}", pace, memory, risk);
}

}  // namespace shardwise::view
