#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search/pricing/search_memory.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/units.h"

namespace shardwise::view {

/// Meaning of the map's rows; its columns are numbers of GPUs.
enum class ScalingRows : std::uint8_t { sequence, batch, model };
inline constexpr std::array<std::string_view, 3> kScalingRows = {"sequence", "batch", "model"};

/// Meaning of a cell's colour.
enum class ScalingColour : std::uint8_t { mfu, cost, headroom, tokens };
inline constexpr std::array<std::string_view, 4> kScalingColours = {"mfu", "cost", "headroom",
                                                                    "tokens"};

/// The best layout of one question.
struct ScalingPoint {
  std::int64_t gpus = 0;
  bool known = false;  // it was searched
  bool at_risk = false;
  std::optional<Layout> layout;  // nothing where none fits
  std::string why_none;
  std::string why_short;  // for a cell: "+12.3 GiB"
  Bytes memory;
  Bytes usable;
  Seconds time;
  double mfu = 0;
  double tokens_per_s = 0;
  double dollars_per_1e9_tokens = 0;
  double headroom = 0;  // share of usable memory that its upper bound leaves
};

/// Multiplies its step time; rates follow.
void slow_down(ScalingPoint& point, double slower);

struct ScalingRow {
  std::string value;  // that a command takes: "8192", "llama-3.1-8b"
  std::string label;
  std::shared_ptr<const ModelSpec> model;
  JobSpec job;
};

/// The best layouts by GPUs and by model, sequence or batch.
struct ScalingMap {
  std::shared_ptr<const Plan> plan;  // of the question around which it lies; null: there is no map
  ScalingRows kind = ScalingRows::sequence;
  std::vector<std::int64_t> gpus;
  std::vector<ScalingRow> rows;
  std::vector<ScalingPoint> cells;  // row by row
  std::size_t column = 0;           // of the question that is asked now
  std::size_t row = 0;
  std::vector<std::size_t> order;  // of the cells: nearest to the question first

  const ScalingPoint& at(std::size_t in_row, std::size_t in_column) const {
    return cells[in_row * gpus.size() + in_column];
  }
  /// The cells of the question's own row, left to right; empty while there is no map.
  std::span<const ScalingPoint> points() const;
  std::size_t known() const;
  /// The first in order that was not searched; nothing when all were.
  std::optional<std::size_t> next() const;
};

/// Smaller and larger clusters of the plan's machines; shorter and longer sequences, smaller and
/// larger batches, or models of the catalogue below and above its own, of its family where there
/// are some.
ScalingMap scaling_map(std::shared_ptr<const Plan> plan, ScalingRows rows);

/// The question of a cell, with the layout that was found, or else with the map's.
Plan plan_of_cell(const ScalingMap& map, std::size_t cell);
/// The cell that asks what this plan asks.
std::optional<std::size_t> find_cell(const ScalingMap& map, const Plan& plan);

/// The answer of a fresh search to such a question, whatever its layout. \returns nothing when it
/// was stopped
std::optional<ScalingPoint> searched(const Plan& question,
                                     const std::shared_ptr<SearchMemory>& memory,
                                     const std::stop_token& stop);

/// Tokens a second for each GPU, of the first point's that has a layout; 0 where there is none.
double efficiency(std::span<const ScalingPoint> points, const ScalingPoint& point);

/// "38.4 %", "$0.87"; empty where the point has no such number.
std::string colour_text(const ScalingPoint& point, ScalingColour colour);
/// "MFU", "$ for 1e9 tokens" …
std::string_view colour_heading(ScalingColour colour);
/// 0 for the worst of the map's cells to 1 for the best; nothing where the cell has no number.
std::optional<double> shade(const ScalingMap& map, const ScalingPoint& point, ScalingColour colour);
/// The worst and the best of the map, as colour_text().
std::array<std::string, 2> colour_ends(const ScalingMap& map, ScalingColour colour);
/// Column of a row with the cheapest tokens; without prices, with the most tokens for each GPU.
/// Nothing where no cell has a layout.
std::optional<std::size_t> cheapest_column(const ScalingMap& map, std::size_t row);

/// All that is known of a cell, a line a fact.
std::string cell_text(const ScalingMap& map, std::size_t cell);

/// The cells that were searched as a CSV file, a line each; numbers exact.
std::string scaling_csv(const ScalingMap& map);

}  // namespace shardwise::view
