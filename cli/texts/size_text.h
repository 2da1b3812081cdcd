#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "planner/search/advice/sizing.h"

namespace shardwise::cli {

/// Amount of a sizing that is printed.
struct SizingScreen {
  std::optional<std::size_t> top;  // offers; without it as many as the first screen has room for
  bool whole = false;              // every table, not the first screen
};

/// Offers as people read them in 80 columns: the answer in one line, the offers cheapest first,
/// then what is too late and what does not fit. At most 40 lines unless `screen` asks for more.
std::string sizing_text(const Sizing& sizing, const SizingGoal& goal, const SizingScreen& screen,
                        bool colour);

}  // namespace shardwise::cli
