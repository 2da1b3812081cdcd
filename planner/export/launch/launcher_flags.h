#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/launch/shell_command.h"

namespace shardwise {

enum class Launcher : std::uint8_t { none, python, torchrun, accelerate, deepspeed, tasks };

/// One flag of a launcher.
struct LauncherFlag {
  std::string name;  // with hyphens for underscores
  std::string value;
  int line = 0;
  int column = 0;
};
using LauncherFlags = std::vector<LauncherFlag>;

/// Reads "--name value" or "--name=value"; `at` is then its last word.
/// \returns whether it was a flag
bool take_launcher_flag(Launcher launcher, const std::vector<ShellWord>& words, std::size_t& at,
                        LauncherFlags& flags);

/// The last flag that has one of the names; null for none.
const LauncherFlag* find_flag(const LauncherFlags& flags, std::initializer_list<const char*> names);

/// The GPUs that Slurm gives a node: the count of "--gpus-per-node h100:8" or "--gres gpu:8".
std::optional<LauncherFlag> gpus_of_node(const LauncherFlags& flags);

/// A value that a variable or a command has, which nobody knows.
bool is_open(std::string_view value);

}  // namespace shardwise
