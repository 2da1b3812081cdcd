#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/planning/plan_answer.h"

namespace shardwise::sim {

/// Which tables have a column.
enum class ColumnUse : std::uint8_t {
  always,     // every table
  differing,  // where its rows differ, or one row has something to tell
  chosen,     // where a reader adds it
};

/// A column of ranked layouts: for the command's table, the report and the viewer.
struct PlanColumn {
  std::string_view key;      // one word, for filters and sorting: "tp", "memory"
  std::string_view heading;  // of a table
  std::string_view unit;     // of `number`; empty for a count and for words
  ColumnUse use = ColumnUse::differing;
  bool words = false;  // no number: read from the left
  /// What rows sort and filter by. NaN where the row has none and for words.
  double (*number)(const PlanRow&) = nullptr;
  /// As tables print it; "-" where the row has none.
  std::string (*text)(const PlanRow&) = nullptr;
};

/// All columns in the order of tables. Keys are unique.
std::span<const PlanColumn> plan_columns();
/// The column of that key, or nullptr.
const PlanColumn* find_plan_column(std::string_view key);

/// The columns that a table of these rows needs, and what all rows have in common instead.
struct ToldColumns {
  std::vector<const PlanColumn*> columns;
  std::vector<std::string> in_all;  // "ZeRO 1", of several rows
};
/// \param several_engines  the engine has a column even where all rows have the same
/// \pre rows is not empty
ToldColumns told_columns(std::span<const PlanRow> rows, bool several_engines);

}  // namespace shardwise::sim
