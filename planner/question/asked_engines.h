#pragma once

#include <string>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The engine of a question that names none.
inline constexpr const char* kUsualEngine = "megatron_ddp";

/// The engine of that name, or nullptr and a problem with the nearest name.
const EngineProfile* read_engine(const std::string& name, Diagnostics& problems);

/// The engines in "fsdp2,megatron_ddp", all of them for "all", the usual one for "".
Result<std::vector<const EngineProfile*>> read_engines(const std::string& names);

}  // namespace shardwise
