#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gui/models/compare/compared.h"
#include "gui/models/compare/metrics_state.h"
#include "planner/score/published.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/table.h"

namespace shardwise::view {

/// A number of the summary bar.
struct Tile {
  std::string id;     // "step", of its probe: "summary.step"
  std::string label;  // "step time"
  std::string value;  // "56.5"
  std::string unit;   // "s", "GiB of 80.0 GiB"
  Tone tone = Tone::plain;
  std::string command;  // of a click: to what explains it
  std::string beside;   // what it is compared with: "measured 54.2 s, +3.1 %"; empty: nothing
  std::string change;   // since the baseline: "+1.20 s"; empty: there is none
  Tone change_tone = Tone::plain;
  std::string brief;  // of the unit, where a line has no room for all tiles; empty: the unit
};

/// sim::tiles(), which the report's page begins with too.
/// \param other     what the plan is compared with; may be null
/// \param baseline  since which the tiles have changed; may be null
std::vector<Tile> summary_tiles(const Plan& plan, const StepReport& report,
                                const Compared* other = nullptr,
                                const StepReport* baseline = nullptr);
/// Errors of predictions of the published rows nearest to the plan: a tile as the others.
/// Nothing where none is known.
std::optional<Tile> error_tile(std::span<const PublishedFigure> nearest);
/// Intervals of what the tiles of step and memory show; empty for others, and where none is known.
std::string tile_intervals(const Tile& tile, const Plan& plan, const StepReport& report);
/// "llama-3-8b on 64 x h100-sxm, torchtitan (FSDP2): time +3.1 %, memory -0.4 %".
std::string figure_text(const PublishedFigure& figure);

/// The median step of a run that is followed, beside the predicted one.
void put_run(std::vector<Tile>& tiles, const MetricsState& metrics, Seconds predicted);

}  // namespace shardwise::view
