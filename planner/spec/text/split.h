#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// Parts between the separators of a list: one part more than separators.
std::vector<std::string> split_at(std::string_view text, char separator);

}  // namespace shardwise
