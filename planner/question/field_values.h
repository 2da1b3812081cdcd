#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/diagnostic.h"

namespace shardwise {

/// What stands between the separators of a list: one part more than separators.
std::vector<std::string> split_at(std::string_view text, char separator);

/// Fields of a Layout with their values, as given.
using FieldValues = std::vector<std::pair<std::string, std::string>>;

/// "tp=4,pp=2" as pairs. \param flag  where a problem is said to be
Result<FieldValues> read_values(const std::string& text, const std::string& flag);

}  // namespace shardwise
