#pragma once

#include <cstdint>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"

namespace shardwise {

/// Bytes of a rank of a stage in the memory of its host: offloaded states, and activations of every
/// micro-batch in flight, pinned once. Source: docs/memory.md, Memory of the host.
std::int64_t host_bytes(const StageParts& parts, const StageContext& context,
                        const StageStates& states);
/// Bytes on the host, given those of the states.
std::int64_t host_bytes(const StageParts& parts, const StageContext& context, std::int64_t states);

/// Memory that a node's host lacks where each of its ranks has so many bytes there.
Bytes host_lacks(std::int64_t bytes_of_rank, const MemoryRules& rules);

}  // namespace shardwise
