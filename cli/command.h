#pragma once

#include "cli/verbs.h"

namespace shardwise::cli {

/// Reads the command line, runs the verb it names, and turns whatever happens into an exit code.
/// A wrong command line is one line on stderr and bad_input; an exception is one line on stderr and
/// world_broke.
ExitCode run_command(int argc, const char* const* argv);

}  // namespace shardwise::cli
