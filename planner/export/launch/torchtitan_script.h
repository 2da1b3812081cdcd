#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/export/launch/shell_command.h"

namespace shardwise {

/// Command that torchtitan's run_train.sh makes of its variables: MODULE=llama3 CONFIG=llama3_8b
/// NGPU=8
/// ./run_train.sh …
struct TorchtitanScript {
  std::vector<ShellWord> arguments;  // --module and --config, before those of the command
  std::int64_t ranks = 0;            // 0: NGPU is no number
};

bool is_torchtitan_script(std::string_view word);

/// \returns nothing in it where the command does not start that script
/// Source: pytorch/torchtitan@b5bcd76c:run_train.sh
TorchtitanScript torchtitan_script(const ShellCommand& command);

}  // namespace shardwise
