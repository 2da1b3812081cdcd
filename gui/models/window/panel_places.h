#pragma once

#include <string>
#include <string_view>

namespace shardwise::view {

/// Places of panels in ImGui's settings: windows and docks, without the day they were used and
/// without tables.
std::string places_of_panels(std::string_view settings);

/// Problem of such a text; empty when there is none. ImGui ends the program for trees of docks
/// that it did not write, so all of it is checked: each line is one that places_of_panels() leaves,
/// numbers are ones that a window can have, and docks make trees, each cut in two or in none.
std::string problem_of_panels(std::string_view panels);

}  // namespace shardwise::view
