#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/plan_answer.h"

namespace shardwise::sim {

/// Which tables have a column.
enum class ColumnUse : std::uint8_t {
  always,     // every table
  differing,  // where its rows differ, or one row has something to tell
  chosen,     // where a reader adds it
};

/// A layout with all that columns and filters tell of it.
struct PricedLayout {
  const Layout* layout = nullptr;
  std::size_t rank = 0;  // 1 = the best; 0 = it has none
  bool tied = false;     // with the best
  Bytes memory;          // peak of the fullest GPU
  Bytes upper;           // its upper bound
  Fit fit = Fit::fits;
  bool front = false;      // on the Pareto front of memory and the step-time model
  Seconds step;            // by which it ranks
  Seconds model;           // of the step-time model
  bool bound = false;      // `step` is a lower bound
  bool estimated = false;  // `step` is the step-time model's, beside rows with a simulated one
  double mfu = 0;          // a share, of `step`, as the next two
  double tokens_per_s = 0;
  double dollars_per_1e9_tokens = 0;  // 0 = no price known
  std::string_view engine;
  std::int64_t gpus = 0;
};

/// A row as tables print it. It keeps references to the row. Fit and front are not set.
/// \param rank  1 = the best; 0 = the row has none
PricedLayout priced(const PlanRow& row, std::size_t rank = 0);
/// The same, with fit and front in that answer.
PricedLayout priced(const PlanRow& row, std::size_t rank, const PlanAnswer& answer);

/// A column of layouts: for the command's table, the report and the viewer.
struct PlanColumn {
  std::string_view key;      // one word, for filters and sorting: "tp", "memory"
  std::string_view heading;  // of a table
  std::string_view meaning;  // "ways of tensor parallelism"
  std::string_view unit;     // of the number; empty for a count and for words
  ColumnUse use = ColumnUse::differing;
  bool words = false;  // the text is words: read from the left, compared as words
  /// What rows sort and filter by. NaN where the row has none, and for words without an order.
  double (*number)(const PricedLayout&) = nullptr;
  /// As tables print it; "-" where the row has none.
  std::string (*text)(const PricedLayout&) = nullptr;
};

/// All columns in the order of tables. Keys are unique.
std::span<const PlanColumn> plan_columns();
/// The column of that key, or nullptr.
const PlanColumn* find_plan_column(std::string_view key);

/// A word that holds of a layout or not, for filters: "fits".
struct PlanTrait {
  std::string_view key;
  std::string_view meaning;
  bool (*holds)(const PricedLayout&) = nullptr;
};
/// All of them. Their keys are no keys of columns.
std::span<const PlanTrait> plan_traits();

/// The columns that a table of these rows needs, and what all rows have in common instead.
struct ToldColumns {
  std::vector<const PlanColumn*> columns;
  std::vector<std::string> in_all;  // "ZeRO 1", of several rows
};
/// \param several_engines  the engine has a column even where all rows have the same
/// \pre rows is not empty
ToldColumns told_columns(std::span<const PlanRow> rows, bool several_engines);

}  // namespace shardwise::sim
