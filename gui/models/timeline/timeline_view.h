#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gui/models/timeline/lane.h"
#include "simulator/workload/price_scale.h"

namespace shardwise::view {

struct StepLanes;

/// A lane by what it is of, whatever other lanes there are: "0.compute", "3.send".
struct LaneName {
  std::size_t stage = 0;
  Stream stream = Stream::compute;
  friend auto operator<=>(const LaneName&, const LaneName&) = default;
};
std::string text_of(const LaneName& name);
std::optional<LaneName> read_lane_name(const std::string& text);

/// A span that was chosen.
struct ChosenSpan {
  LaneName lane;
  std::size_t span = 0;
  friend bool operator==(const ChosenSpan&, const ChosenSpan&) = default;
};

/// Something of the step that takes another time, and the step that follows from it.
struct Stretch {
  std::string word;  // "backward", "tp", "infiniband"
  double factor = 1;
  std::shared_ptr<const StepLanes> step;  // null until it is simulated
};

/// View of the timeline. AppState has the step and the range.
struct TimelineView {
  ColourBy colour = ColourBy::kind;
  bool by_stream = false;    // lanes of one stream together, not those of one stage
  bool wheel_zooms = false;  // without Ctrl
  bool path_shown = false;   // the critical path
  bool uncut = false;        // a step that is too long for its pixels is drawn whole
  double scroll = 0;         // of the lanes that are not pinned, in units
  std::int64_t rank = 0;     // of whose pipeline the ranks are shown
  std::set<LaneName> pinned;
  std::vector<double> marks;  // seconds
  std::string search;         // words of the spans that stay bright; empty: all

  std::optional<ChosenSpan> chosen;
  std::vector<ChosenSpan> waited;     // for these; the one that ended last first
  std::optional<TimeRange> measured;  // the range whose times are read out
  std::optional<TimeRange> grabbed;   // the active time of the block whose edge is dragged
  std::string grabbed_word;           // of that block, for timeline.stretch
  std::optional<Stretch> stretch;
};

}  // namespace shardwise::view
