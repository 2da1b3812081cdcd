#include "gui/models/timeline/readout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "planner/recorded/stage_timeline.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

double sum_of(const ColourSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// What prefix sums have between two times; of a span that is partly between, that share of it.
double between(const Lane& lane, const std::vector<double>& sums, TimeRange range) {
  const auto [first, last] = spans_in(lane, range);
  if (first >= last) return 0;
  const auto outside = [&](std::size_t span) {
    const double from = lane.spans.active_start[span];
    const double to = lane.spans.end[span];
    if (to <= from) return 0.0;
    const double inside = std::min(to, range.to) - std::max(from, range.from);
    return (1 - std::clamp(inside / (to - from), 0.0, 1.0)) * (sums[span + 1] - sums[span]);
  };
  double sum = sums[last] - sums[first] - outside(first);
  if (last - first > 1) sum -= outside(last - 1);
  return sum;
}

}  // namespace

Readout read_out(const StepLanes& step, TimeRange range) {
  Readout found;
  found.duration = range.length();
  if (step.report && step.report->timeline) {
    found.exposed_stage = busiest_of(step.report->timeline->stages);
  }
  for (std::size_t stage = 0; stage < step.exposed.size(); ++stage) {
    const ExposedStrip& strip = step.exposed[stage];
    const double exposed = strip.until(range.to) - strip.until(range.from);
    if (stage == found.exposed_stage) found.exposed = exposed;
    if (exposed <= found.most_exposed) continue;
    found.most_exposed = exposed;
    found.most_stage = stage;
  }
  for (const Lane& lane : step.lanes) {
    LaneReadout made;
    made.lane = name_of(lane);
    made.label = fmt::format("stage {}, {}", lane.stage,
                             lane.stream == Stream::compute ? "compute" : lane.label);
    made.busy = sum_of(lane.busy_until(ColourBy::kind, range.to)) -
                sum_of(lane.busy_until(ColourBy::kind, range.from));
    if (made.busy <= 0) continue;
    if (!lane.moved.empty()) {
      made.bytes = between(lane, lane.moved, range);
      made.bus = BytesPerSecond(between(lane, lane.on_bus, range) / made.busy);
    }
    found.lanes.push_back(std::move(made));
  }
  return found;
}

std::string text_of(const Readout& readout) {
  const std::string duration = format_seconds(Seconds(readout.duration));
  if (readout.most_exposed <= 0) return duration + ", nothing exposed";
  std::string text = fmt::format("{}, exposed {} on stage {}", duration,
                                 format_seconds(Seconds(readout.exposed)), readout.exposed_stage);
  if (readout.most_stage == readout.exposed_stage) return text;
  return text + fmt::format(", the slowest; {} on stage {}",
                            format_seconds(Seconds(readout.most_exposed)), readout.most_stage);
}

}  // namespace shardwise::view
