#pragma once

#include <string>
#include <string_view>

namespace shardwise::exec {

// The name of a run: 32 hexadecimal digits, drawn where it begins and kept wherever it is resumed.

/// The run of checkpoints from before runs had names. All such checkpoints are one run.
inline constexpr std::string_view kUnnamedRun = "00000000000000000000000000000000";

/// Draws one. \throws IoError where the system has no random numbers
std::string new_run_id();
bool is_run_id(std::string_view text);
/// Spells it as messages do: its first digits.
std::string short_run_id(std::string_view run);

}  // namespace shardwise::exec
