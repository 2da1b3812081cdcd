#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/export/launch/launcher_flags.h"

namespace shardwise {

/// A key of accelerate's YAML and its value.
struct AccelerateKey {
  std::string name;  // "fsdp_config.fsdp_version"
  std::string value;
};

/// Not of the YAML: the flag without which others of parallelism_config count only beside a YAML
/// that has this section.
inline constexpr std::string_view kUsesParallelismConfig = "use_parallelism_config";

/// Not of the YAML: the flag that names it.
inline constexpr std::string_view kNamesConfiguration = "config_file";

/// The key that a flag of `accelerate launch` states; nothing for other flags. A flag counts before
/// the file.
/// Source: accelerate 1.15.0, commands/launch.py, _validate_launch_command.
std::optional<AccelerateKey> accelerate_key(const LauncherFlag& flag);

}  // namespace shardwise
