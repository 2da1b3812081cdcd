#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardwise {

/// Columns of a line of help, the terminal that everybody has.
inline constexpr std::size_t kHelpWidth = 80;

/// `name` and, from `column` on, `meaning` wrapped between words to kHelpWidth columns, each line
/// ended. A name that reaches the column has a line of its own; nothing for two empty texts.
std::string help_row(std::string_view name, std::string_view meaning, std::size_t column);

/// Words of a check of a flag's value about an empty one.
inline constexpr std::string_view kNeedsAValue = "needs a value";

/// The text with one empty line wherever it has several.
std::string without_blank_pairs(std::string_view text);

/// Mistake that CLI11 finds, in one line of our words; what the user typed is in it as
/// typed, control characters apart: "--jitter: 3 is not a number from 0 to 1".
std::string plain_mistake(std::string text);

}  // namespace shardwise
