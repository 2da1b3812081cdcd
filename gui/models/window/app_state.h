#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/compare/compare_state.h"
#include "gui/models/compare/metrics_state.h"
#include "gui/models/explore/explore_model.h"
#include "gui/models/explore/explore_state.h"
#include "gui/models/explore/layout_row.h"
#include "gui/models/explore/neighbour_model.h"
#include "gui/models/explore/trade_model.h"
#include "gui/models/memory/memory_model.h"
#include "gui/models/mesh/mesh_state.h"
#include "gui/models/question/what_if_model.h"
#include "gui/models/scaling/scaling_state.h"
#include "gui/models/timeline/timeline_model.h"
#include "gui/models/window/panel_state.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

enum class Workspace : std::uint8_t { explore, memory, timeline, mesh, scaling };
inline constexpr std::size_t kWorkspaces = 5;
inline constexpr std::array<std::string_view, kWorkspaces> kWorkspaceNames = {
    "explore", "memory", "timeline", "mesh", "scaling"};

/// All that a frame may show. Session alone changes it.
struct AppState {
  Plan plan;                                    // the question, and the layout that is selected
  StepReport report;                            // estimated, in the frame
  std::shared_ptr<const StepReport> simulated;  // of the plan; null until it is
  std::vector<SliderSection> sliders;
  /// A measured run, by whose error all predictions are corrected; null: none.
  std::shared_ptr<const Correction> correction;

  Answer answer;
  std::uint64_t asked = 0;  // generation of the question; answer.generation when it is answered
  ExploreView explore;
  ExploreState exploring;
  std::vector<std::uint32_t> shown;  // rows of the answer
  TradeCloud cloud;                  // of these
  std::size_t selected = 0;          // row of the answer; rows.size() when the layout is none
  /// Peaks by row of the answer and by group, once it was asked for.
  std::vector<std::optional<GroupedBytes>> bars;

  std::shared_ptr<const StepLanes> lanes;  // of the plan; null until it is simulated
  TimeRange range;                         // of the step that is drawn
  bool all_lanes = false;                  // also those that are hardly ever busy
  TimelineView timeline;                   // how it is looked at

  std::vector<NeighbourBar> neighbours;  // of the plan's layout
  bool neighbours_known = false;

  std::optional<StepReport> winner;             // of the best layout that fits
  std::shared_ptr<const StepReport> explained;  // best_report() with reasons; null until it is
  bool details_open = false;                    // explanations are shown, of the
  std::string subject;                          // subject; empty: all
  MeshState mesh;
  ScalingState scaling;

  CompareState compare;
  MetricsState metrics;
  PanelState panel;

  Workspace workspace = Workspace::explore;
  MemoryBy memory_by = MemoryBy::phase;
  std::optional<MemoryGroup> memory_group;  // whose buffers at the peak are listed
  bool dark = true;
  std::string message;  // the last thing to say; empty: nothing

  bool help_open = false;
  bool palette_open = false;
  bool start_open = false;  // the menus of model and cluster
  bool quits = false;
  std::string palette_text;          // what it opens with
  std::uint64_t palette_opened = 0;  // how often it was opened
  std::string png_path;              // of a picture that is asked for; empty: none
  std::uint64_t arrangements = 0;    // how often the default arrangement was asked for
  std::string view_path;             // of a file for the places of panels; empty: none
  std::string panels;                // their places, to be put there; empty: they stay

  /// The step that the timeline shows: stretched where one is; null until one is known.
  const std::shared_ptr<const StepLanes>& kept_step() const {
    return timeline.stretch && timeline.stretch->step ? timeline.stretch->step : lanes;
  }
  const StepLanes* shown_step() const { return kept_step().get(); }
  /// Report that `plan` and `report` print, as soon as it is known.
  const StepReport& best_report() const { return simulated ? *simulated : report; }
  bool current() const { return answer.generation == asked; }
};

}  // namespace shardwise::view
