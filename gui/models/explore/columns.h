#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/plan_columns.h"
#include "gui/models/explore/layout_row.h"

namespace shardwise::view {

/// A column of the strategy table: one of sim::plan_columns(), which the command and the report
/// print, and how the viewer shows it. Sorting, filters and the menu read the same list.
struct Column : sim::PlanColumn {
  int width = 0;      // in pixels at scale 1
  bool first = true;  // shown until people choose columns
};

/// All but the rank, which is the order of the table.
std::span<const Column> columns();
/// A row for columns and filters. It keeps references to both.
/// \param rank  1 = the best; 0 = not asked
sim::PricedLayout priced(const Answer& answer, const LayoutRow& row, std::size_t rank = 0);
/// The index of the column of that key.
std::optional<std::size_t> find_column(std::string_view key);
/// Indices of the columns that are shown first: those in which rows differ, memory, step and MFU,
/// and the step-time model's time beside simulated steps.
std::vector<std::size_t> telling_columns(const Answer& answer);
/// Those of these columns that have room, the least telling left out first. Widths are those of
/// scale 1, with `between` for each, and `rest` is for others.
std::vector<std::size_t> columns_within(std::vector<std::size_t> shown, double room, double between,
                                        double rest);
/// These rows as a CSV file, all columns, numbers exact.
std::string rows_csv(const Answer& answer, std::span<const std::uint32_t> rows);

}  // namespace shardwise::view
