#include "gui/models/timeline/lane_columns.h"

#include <algorithm>
#include <cmath>

namespace shardwise::view {
namespace {

ColourSteps steps_of(const Coverage& coverage) {
  ColourSteps steps{};
  for (std::size_t c = 0; c < kColours; ++c) {
    const double share = static_cast<double>(coverage.shares[c]);
    if (share <= 0) continue;  // most colours of most columns
    steps[c] = static_cast<std::uint8_t>(
        std::min(std::lround(share * kWholeColumn), static_cast<long>(kWholeColumn)));
  }
  return steps;
}

}  // namespace

std::vector<ColumnRun<ColourSteps>> step_runs(const Lane& lane, ColourBy by, TimeRange range,
                                              std::size_t columns) {
  std::vector<ColumnRun<ColourSteps>> runs;
  for (const ColumnRun<Coverage>& run : coverage_runs(lane, by, range, columns)) {
    const ColourSteps steps = steps_of(run.shown);
    if (steps == ColourSteps{}) continue;
    const bool same = !runs.empty() && runs.back().last == run.first && runs.back().shown == steps;
    if (same) {
      runs.back().last = run.last;
    } else {
      runs.push_back({run.first, run.last, steps});
    }
  }
  return runs;
}

void DrawnColumns::begin(const std::shared_ptr<const StepLanes>& step, ColourBy by, TimeRange range,
                         double columns, std::size_t part) {
  if (step_.lock() != step || by_ != by) parts_.clear();
  step_ = step;
  by_ = by;
  now_ = part;
  if (parts_.size() <= part) parts_.resize(part + 1);
  Part& now = parts_[part];
  if (now.range != range || now.columns != columns) now = {range, columns, {}};
}

const std::vector<ColumnRun<ColourSteps>>& DrawnColumns::of(const Lane& lane, ColumnPart part) {
  Part& now = parts_[now_];
  const auto [at, made] = now.runs.try_emplace({&lane, part.first, part.last});
  if (made) {
    const double each = now.range.length() / now.columns;
    const auto time = [&](std::size_t column) {
      return now.range.from + static_cast<double>(column) * each;
    };
    at->second = step_runs(lane, by_, {time(part.first), time(part.last)}, part.last - part.first);
  }
  return at->second;
}

}  // namespace shardwise::view
