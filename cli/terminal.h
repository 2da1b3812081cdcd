#pragma once

#include "cli/verbs.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::cli {

/// Standard output is a terminal that shows colour, and NO_COLOR does not forbid it (no-color.org).
bool wants_colour();

/// Prints all problems to standard error. \returns what a verb with bad input ends with.
ExitCode refuse(const Diagnostics& problems);

}  // namespace shardwise::cli
