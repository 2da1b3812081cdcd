#pragma once

#include <string>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The first of some problems as one line, and how many more there are: "run.json:3: /step_time_s:
/// -1 is less than 0 (hint)". For who was given no flags: "model: …", not "command line: --model:
/// …".
std::string one_line(const Diagnostics& problems);

}  // namespace shardwise
