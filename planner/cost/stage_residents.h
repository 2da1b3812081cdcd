#pragma once

#include <cstdint>

#include "planner/cost/amount.h"
#include "planner/cost/memory.h"

namespace shardwise {

/// What libraries hold on a stage from the first pass on, whatever runs.
struct StageResidents {
  Amount gather_buffer;  // Megatron's global buffer: gathered input of a head, attention scores
  Amount framework_workspace;
  Amount engine_workspace;
  Amount grouped_workspace;
  Amount overlap_workspace;
  Amount placeholders;  // dummy weight gradients
  Amount communicators;

  std::int64_t workspace() const {
    return gather_buffer.bytes() + framework_workspace.bytes() + engine_workspace.bytes() +
           grouped_workspace.bytes() + overlap_workspace.bytes();
  }
};
/// Source: docs/memory.md, library, runtime, allocator.
StageResidents stage_residents(const StageParts& parts, const StageContext& context);

/// A communicator for each axis with more than one rank.
Amount communicators(const Layout& layout, const MemoryRules& rules);

/// What the caching allocator reserves and does not hand out. Source: as above.
std::int64_t allocator_slack_bytes(std::int64_t allocated, std::int64_t states,
                                   const MemoryRules& rules);

}  // namespace shardwise
