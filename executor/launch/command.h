#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "planner/spec/text/diagnostic.h"

namespace CLI {
class App;
}

namespace shardwise::exec {

// Parts the verbs of shardwise-run have in common.

inline constexpr int kDone = 0;
inline constexpr int kDamaged = 1;  // of verify
inline constexpr int kSilent = 1;   // of status
inline constexpr int kBadInput = 2;
inline constexpr int kWorldBroke = 3;

/// Runs the verb that was named, once the whole command line has been read. \returns the exit
/// code
using Verb = std::function<int()>;
/// Each adds a verb with its flags and its help, and a callback that sets `verb`.
/// \param command  the program's words
void add_train(CLI::App& app, Verb& verb, const std::vector<std::string>& command);
void add_calibrate(CLI::App& app, Verb& verb);
void add_verify(CLI::App& app, Verb& verb);
void add_status(CLI::App& app, Verb& verb);

/// Reads the command line of shardwise-run and does what it says. A first word that is no verb and
/// no flag of the program's own begins a command line of `train`. \returns the exit code
int run_command(int argc, const char* const* argv);

/// Says what is wrong with a flag of the command line.
Diagnostic wrong_use(std::string flag, std::string message, std::string hint);

/// Prints the problems. \returns kBadInput
int refuse(const Diagnostics& problems);

/// The first line of several problems, and how many there are.
std::string summary(const Diagnostics& problems);

/// The end of a run that failed: what it says, at once.
void say(const Failure& failure);

/// Adds a problem when the folder of the file that `flag` names is none or cannot be written to.
void find_unwritable(const char* flag, const std::string& path, Diagnostics& problems);

}  // namespace shardwise::exec
