#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/score/rows/row.h"

namespace shardwise {

/// A flag of rows that no rule reads.
struct FlagUnread {
  std::string flag;
  std::string why;  // what stands for it, or what is missing; "not known" of one nobody has met
  std::size_t rows = 0;
};

/// Whether a rule reads this flag of a row.
bool is_read(std::string_view flag);
/// All flags that rules read, in the order of names.
std::vector<std::string_view> read_flags();
/// Why no rule reads a flag.
std::string_view why_unread(std::string_view flag);

/// The stated flags of rows that no rule reads, those of the most rows first.
std::vector<FlagUnread> unread_flags(std::span<const Row> rows);

}  // namespace shardwise
