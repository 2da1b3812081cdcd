#pragma once

#include <optional>
#include <vector>

#include "planner/export/shell/shell_lexer.h"

namespace shardwise {

/// The words that bash makes of the braces of one: x{a,b} is xa and xb, {1..4} is 1, 2, 3 and 4.
/// Braces in quotes, and those without a comma and a range, stay. Nothing for a word without
/// braces. What comes out is charged to `trouble`, which stops at kMostShellBytes.
/// Source: bash's manual, Brace Expansion; braces.c for what the manual leaves open.
std::optional<std::vector<std::vector<ShellPart>>> brace_expanded(
    const std::vector<ShellPart>& parts, ShellTrouble& trouble, int line);

}  // namespace shardwise
