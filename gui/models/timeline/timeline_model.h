#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/models/memory/memory_course.h"
#include "gui/models/timeline/lane.h"
#include "gui/models/timeline/timeline_view.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/clock/simulate.h"

namespace shardwise::view {

/// The span of a step whose communication is exposed longest.
struct WorstSpan {
  ChosenSpan span;
  std::string text;  // "all-to-all of experts, layer 12, forward: 40 ms exposed of 55 ms"
};

/// A step as lanes: of one rank of each stage, those of one pipeline.
struct StepLanes {
  double length = 0;                             // seconds
  std::vector<Lane> lanes;                       // by stage, then stream
  std::vector<ExposedStrip> exposed;             // by stage
  std::vector<std::vector<std::uint32_t>> path;  // by lane: its spans on the critical path
  std::array<bool, kColours> paints{};           // that spans have
  std::optional<WorstSpan> worst;                // none where nothing is exposed
  std::vector<std::int64_t> ranks;               // by stage
  MemoryCourseView memory;                       // of the fullest stage
  std::string problem;                           // why there are none
  bool simulated = false;
  std::shared_ptr<const StepReport> report;           // of the simulated step
  std::shared_ptr<const sim::Simulation> simulation;  // that it is of
  std::shared_ptr<const Plan> plan;

  /// Finds a lane by name; null where there is none.
  const Lane* find(const LaneName& name) const;
};

inline LaneName name_of(const Lane& lane) { return {lane.stage, lane.stream}; }

/// Whether a lane is drawn where not all are: compute, and what is busy for a while.
bool is_told(const StepLanes& step, const Lane& lane);

/// Whether a lane tells where exposed communication comes from: for a hundredth of the step.
bool is_exposed(const StepLanes& step, const Lane& lane);

/// Question about a step.
struct StepQuestion {
  std::int64_t rank = 0;                // the ranks of its pipeline are shown
  std::vector<sim::PriceScale> scales;  // of prices
};

/// The simulated step of a plan. Once `stop` is requested it soon returns one that is not
/// simulated.
StepLanes step_lanes(const Plan& plan, const StepQuestion& question = {},
                     const std::stop_token& stop = {});

/// The spans for which a span waited, the one that ended last first; none of ranks that are not
/// shown.
std::vector<ChosenSpan> waited_for(const StepLanes& step, const ChosenSpan& span);

/// A part of a step on so many pixels from the left.
struct DrawnPart {
  TimeRange range;
  double left = 0;
  double right = 0;
};
/// Parts of a whole step that `width` pixels show, as the page does: all of it or, where passes
/// would be too narrow to be told apart, its begin, its middle and its end on one scale.
std::vector<DrawnPart> drawn_parts(const StepLanes& step, double width);

/// The range after zooming by `factor` (below 1: closer) with the time at `share` of it unmoved,
/// within a step of that length.
TimeRange zoomed(TimeRange range, double factor, double share, double length);
/// Range after moving by `share` of what is drawn.
TimeRange panned(TimeRange range, double share, double length);
/// A span with some room around it.
TimeRange focused(const Lane& lane, std::size_t span, double length);

/// "fwd.layer12.mb3" of a simulated step.
std::string span_name(const StepLanes& step, const Lane& lane, std::size_t span);
/// Its name, how long it took, and what it waited and was exposed.
std::string span_text(const StepLanes& step, const Lane& lane, std::size_t span);

/// The first span after `chosen`, lane by lane in time, whose name has these letters; after the
/// last span comes the first. Without `chosen` from the first span on.
std::optional<ChosenSpan> next_match(const StepLanes& step, const std::string& words,
                                     const std::optional<ChosenSpan>& chosen);

}  // namespace shardwise::view
