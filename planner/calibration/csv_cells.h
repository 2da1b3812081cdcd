#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/text/csv.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reads the cells of a table with types and ranges checked, and gathers every problem (the list
/// stops at 100). A column that must be there and is missing is one problem; its cells are "" or
/// `low` then.
class CsvCells {
 public:
  /// A column of the table, found once.
  struct Column {
    std::size_t index = 0;
    bool there = false;
  };

  CsvCells(const CsvTable& table, Diagnostics& problems) : table_(table), problems_(problems) {}

  Column column(std::string_view name);
  /// Column that may be missing.
  Column optional(std::string_view name) const;
  bool has(std::string_view name) const { return table_.column(name).has_value(); }

  std::string_view text(const CsvTable::Row& row, Column column) const;
  double number(const CsvTable::Row& row, Column column, double low, double high);
  std::int64_t integer(const CsvTable::Row& row, Column column, std::int64_t low,
                       std::int64_t high);

 private:
  void fail(const CsvTable::Row& row, Column column, std::string message, std::string hint = {});

  const CsvTable& table_;
  Diagnostics& problems_;
};

}  // namespace shardwise
