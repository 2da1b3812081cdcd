#pragma once

#include <string>

#include "executor/comm/abort.h"
#include "planner/spec/diagnostic.h"

namespace CLI {
class App;
}

namespace shardwise::exec {

// What the verbs of shardwise-run have in common.

inline constexpr int kDone = 0;
inline constexpr int kBadInput = 2;
inline constexpr int kWorldBroke = 3;

/// How reading a command line ended.
enum class CommandLine { run, done, wrong };
/// Reads the command line; prints the help, or one line about what is wrong.
CommandLine parse_line(CLI::App& app, int argc, const char* const* argv);

/// Prints the problems. \returns kBadInput
int refuse(const Diagnostics& problems);

/// The end of a run that failed: what it says, at once.
void say(const Failure& failure);

/// Adds a problem when the folder of the file that `flag` names is none or cannot be written to.
void find_unwritable(const char* flag, const std::string& path, Diagnostics& problems);

}  // namespace shardwise::exec
