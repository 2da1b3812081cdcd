#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/layout_row.h"

namespace shardwise::view {

/// A column of the strategy table. Sorting, filters and export read the same list.
struct Column {
  std::string_view key;      // in filters and CSV files: "tp", "memory"
  std::string_view heading;  // "tp", "GiB"
  std::string_view meaning;  // for the tooltip and the help
  double (*number)(const LayoutRow& row) = nullptr;
  std::string (*text)(const LayoutRow& row) = nullptr;
  int width = 0;       // in pixels at scale 1
  bool words = false;  // the text is a word, compared as one
  bool first = true;   // shown until people choose columns
};

std::span<const Column> columns();
/// The index of the column of that key.
std::optional<std::size_t> find_column(std::string_view key);
/// Indices of the columns that are shown first: those in which rows differ, memory, step and MFU.
std::vector<std::size_t> telling_columns(const Answer& answer);
/// Of these columns the ones that have room, the least telling left out first. Widths are those of
/// scale 1, with `between` for each, and `rest` is for others.
std::vector<std::size_t> columns_within(std::vector<std::size_t> shown, double room, double between,
                                        double rest);
/// These rows as a CSV file, all columns, numbers exact.
std::string rows_csv(const Answer& answer, std::span<const std::uint32_t> rows);

}  // namespace shardwise::view
