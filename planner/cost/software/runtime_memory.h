#pragma once

#include <string>

#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

/// Memory software takes on a GPU under an engine: context, workspaces and communicators by the
/// GPU's architecture, the allocator's slack by engine. A part that `engine.runtime` states already
/// stays. The figures, their sources and residuals are configs/engines/runtime.json and
/// allocator.json.
RuntimeMemory runtime_memory(const EngineProfile& engine, const GpuSpec& gpu);

/// The data that an engine's allocator was fitted to, as allocator.json names it.
const std::string& allocator_data(const EngineProfile& engine);

}  // namespace shardwise
