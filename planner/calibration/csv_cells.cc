#include "planner/calibration/csv_cells.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {}  // namespace

CsvCells::Column CsvCells::column(std::string_view name) {
  const Column found = optional(name);
  if (!found.there) {
    const auto near = nearest(name, table_.columns);
    problems_.push_back({table_.file, 1, 0, "", fmt::format("no column {}", name),
                         near ? fmt::format("did you mean {}?", shown(*near)) : ""});
  }
  return found;
}

CsvCells::Column CsvCells::optional(std::string_view name) const {
  const std::optional<std::size_t> index = table_.column(name);
  return {index.value_or(0), index.has_value()};
}

std::string_view CsvCells::text(const CsvTable::Row& row, Column column) const {
  return column.there ? std::string_view(row.cells[column.index]) : std::string_view();
}

double CsvCells::number(const CsvTable::Row& row, Column column, double low, double high) {
  if (!column.there) return low;
  const std::string& cell = row.cells[column.index];
  const std::optional<double> read = parse_number(cell);
  if (!read) {
    fail(row, column, fmt::format("\"{}\" is not a number", shown(cell)),
         fmt::format("use {} to {}", low, high));
    return low;
  }
  const double value = *read;
  if (value < low || value > high) {
    fail(row, column, fmt::format("{} is too {}", value, value < low ? "small" : "large"),
         fmt::format("use {} to {}", low, high));
    return low;
  }
  return value;
}

std::int64_t CsvCells::integer(const CsvTable::Row& row, Column column, std::int64_t low,
                               std::int64_t high) {
  if (!column.there) return low;
  const std::string& cell = row.cells[column.index];
  const std::optional<double> any = parse_number(cell);
  const std::optional<std::int64_t> value = parse_integer(cell);
  if (value && *value >= low && *value <= high) return *value;
  const std::string hint = fmt::format("use {} to {}", low, high);
  if (!any) {
    fail(row, column, fmt::format("\"{}\" is not a number", shown(cell)), hint);
  } else if (!value && std::trunc(*any) != *any) {
    fail(row, column, fmt::format("{} is not an integer", *any), hint);
  } else {
    const bool small = *any < static_cast<double>(low);
    fail(row, column, fmt::format("{} is too {}", shown(cell), small ? "small" : "large"), hint);
  }
  return low;
}

void CsvCells::fail(const CsvTable::Row& row, Column column, std::string message,
                    std::string hint) {
  if (problems_.size() >= kMostListedProblems) return;
  problems_.push_back({table_.file, row.line, 0, table_.columns[column.index], std::move(message),
                       std::move(hint)});
}

}  // namespace shardwise
