#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
/// Source: "optimal string alignment", Boytsov 2011 (doi:10.1145/1963190.1963191), section 2.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Whether their edit distance is 1. Looks at neither where their lengths rule that out: a key of
/// any length costs nothing.
bool is_one_slip(std::string_view a, std::string_view b);

/// The entry of `known` nearest to `word` by edit distance, if near enough to be a slip of the pen.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace shardwise
