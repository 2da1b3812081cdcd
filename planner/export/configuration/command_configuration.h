#pragma once

#include <string>

#include "planner/export/configuration/configuration.h"
#include "planner/export/launch/launcher.h"
#include "planner/export/shell/shell_text.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reads a command: the settings behind its program, the ranks of its launcher, and the files
/// that the script writes for one of both.
/// \param file  the name put into diagnostics
Result<Configuration> configuration_of_command(const ShellCommand& command, const std::string& file,
                                               const GivenFiles& given);

}  // namespace shardwise
