#pragma once

#include <map>
#include <string>

#include "planner/question/subject.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A second name of the field recompute_operations, for the names of Megatron-Core's modules.
inline constexpr const char* kModulesField = "recompute_modules";

/// Moves what recompute_modules names to the field recompute_operations. \returns whether that is
/// the one which was given
bool names_modules(std::map<std::string, std::string>& texts);

/// Names the flag that was given, and what it takes.
void name_modules_flag(Diagnostics& problems);

/// Replaces names of Megatron-Core's modules by the operations of the model that they run again.
void expand_modules(Subject& subject, Diagnostics& problems);

}  // namespace shardwise
