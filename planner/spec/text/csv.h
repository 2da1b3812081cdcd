#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A table of text with named columns. Source: RFC 4180.
struct CsvTable {
  struct Row {
    int line = 0;  // 1-based, where the row begins
    std::vector<std::string> cells;
  };
  std::string file;
  std::vector<std::string> columns;
  std::vector<Row> rows;  // each with as many cells as there are columns

  std::optional<std::size_t> column(std::string_view name) const;
};

/// Parses a table whose first line names the columns. Problems: no such line, a column named twice,
/// a row with fewer or more cells, a quote that is not closed.
Result<CsvTable> parse_csv(std::string_view text, const std::string& file);

}  // namespace shardwise
