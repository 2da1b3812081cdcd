#pragma once

#include <map>
#include <string>

#include "cli/job_flags.h"
#include "planner/spec/diagnostic.h"

namespace shardwise::cli {

/// A second flag for the field recompute_operations: --recompute-modules, with the names of
/// Megatron-Core's modules.
inline constexpr const char* kModulesField = "recompute_modules";

/// Moves what --recompute-modules names to the field recompute_operations. \returns whether that is
/// the flag which was typed
bool names_modules(std::map<std::string, std::string>& texts);

/// Names the flag that was typed, and what it takes.
void name_modules_flag(Diagnostics& problems);

/// Replaces names of Megatron-Core's modules by the operations of the model that they run again.
void expand_modules(Subject& subject, Diagnostics& problems);

}  // namespace shardwise::cli
