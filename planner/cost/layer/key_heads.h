#pragma once

#include <cstdint>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

// Heads of keys and values that are fewer than the ranks of tensor parallelism. Under our own
// engine neighbouring ranks have the same head whole, each for its own query heads. Other engines
// are priced with a part of a head a rank.

/// Ranks that have the same heads of keys and values: 1 where there are enough.
std::int64_t head_copies(std::int64_t kv_heads, const EngineProfile& engine, const Layout& layout);

/// Whether an operation makes or norms keys alone, or values.
bool is_of_key_heads(const OperationSpec& op);

/// Ranks that have the same part of a parameter that tensor parallelism cuts: 1 of most.
std::int64_t parameter_copies(const LayerSpec& layer, std::int32_t parameter,
                              const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
