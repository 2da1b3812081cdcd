#pragma once

#include <cstdint>
#include <vector>

#include "planner/export/shell/shell_lexer.h"
#include "planner/export/shell/shell_variables.h"

namespace shardwise {

/// How a command ends, as far as its text says.
enum class Outcome : std::uint8_t { yes, no, unknown };

Outcome negated(Outcome outcome);

/// Outcome of [ … ]: -z, -n, =, ==, !=, -eq, -ne, -lt, -le, -gt, -ge, and ! before them. Unknown
/// where it asks for anything else, such as a file, or for a value that nobody knows. A variable
/// that the script does not set is empty for -z and -n, as it is for ${NAME:-VALUE}.
/// \param words  between [ and ]
Outcome test_of(const std::vector<ShellWord>& words);

/// Outcome of [[ … ]]: tests as above, joined by && and ||.
/// \param tokens  between [[ and ]]
Outcome test_of(const std::vector<ShellToken>& tokens, ShellVariables& variables);

/// Whether a value has the shape of a pattern of case: plain text, or * alone.
Outcome matches(const std::string& value, const ShellToken& pattern, ShellVariables& variables);

}  // namespace shardwise
