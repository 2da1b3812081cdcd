#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/nearest.h"

namespace shardwise::view {

/// The value of an enumeration that a word names; nothing where it names none. \param names  by
/// value
template <class Choice, std::size_t kCount>
std::optional<Choice> named(const std::array<std::string_view, kCount>& names,
                            std::string_view word) {
  const auto found = std::ranges::find(names, word);
  if (found == names.end()) return std::nullopt;
  return static_cast<Choice>(found - names.begin());
}

/// The value after `now`; after the last, the first.
template <class Choice, std::size_t kCount>
Choice next_of(const std::array<std::string_view, kCount>& /*names*/, Choice now) {
  return static_cast<Choice>((static_cast<std::size_t>(now) + 1) % kCount);
}

/// named(); without a word, next_of().
template <class Choice, std::size_t kCount>
std::optional<Choice> choose(const std::array<std::string_view, kCount>& names, Choice now,
                             const std::string& word) {
  if (word.empty()) return next_of(names, now);
  return named<Choice>(names, word);
}

/// "red is none of mfu, cost".
template <std::size_t kCount>
std::string none_of(const std::string& word, const std::array<std::string_view, kCount>& names) {
  return fmt::format("{} is none of {}", word.empty() ? "nothing" : word, fmt::join(names, ", "));
}

/// "zeor is no column (did you mean zero?)", "red is no column: tp, cp, pp".
inline std::string unknown_word(std::string_view word, std::string_view what,
                                const std::vector<std::string>& known) {
  const std::optional<std::string> near = nearest(word, known);
  return fmt::format("{} is no {}{}", word.empty() ? "nothing" : word, what,
                     near ? fmt::format(" (did you mean {}?)", *near)
                          : fmt::format(": {}", fmt::join(known, ", ")));
}

}  // namespace shardwise::view
