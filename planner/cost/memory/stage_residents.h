#pragma once

#include <cstdint>

#include "planner/cost/memory/amount.h"
#include "planner/cost/memory/memory.h"

namespace shardwise {

/// Bytes libraries hold on a stage from the first pass on, whatever runs.
struct StageResidents {
  Amount gather_buffer;  // Megatron's global buffer: gathered input of a head, attention scores
  Amount framework_workspace;
  Amount engine_workspace;
  Amount grouped_workspace;
  Amount overlap_workspace;
  Amount kernel_workspace;  // our kernels' block on a GPU: there before the first pass
  Amount placeholders;      // dummy weight gradients
  Amount communicators;
  Amount step_block;  // what host and device hand each other, there from the start

  std::int64_t workspace() const {
    return gather_buffer.bytes() + framework_workspace.bytes() + engine_workspace.bytes() +
           grouped_workspace.bytes() + overlap_workspace.bytes() + kernel_workspace.bytes();
  }
};
/// Source: docs/memory.md, library, runtime, allocator.
StageResidents stage_residents(const StageParts& parts, const StageContext& context);

/// step_block() under our kernels, else nothing.
Amount step_block_of(const Layout& layout, std::int64_t num_microbatches, const MemoryRules& rules);

/// A communicator for each axis with more than one rank.
Amount communicators(const Layout& layout, const MemoryRules& rules);

/// Whether slack is RuntimeMemory::slack_whole_share of what is allocated: no gradients of whole
/// units come and go, as no rank shares them or hardly anything is trained.
bool has_slack_of_whole(const StageParts& parts, const Layout& layout, const MemoryRules& rules);

/// Bytes the caching allocator reserves and does not hand out. Source: as above.
std::int64_t allocator_slack_bytes(std::int64_t allocated, std::int64_t states,
                                   const StageParts& parts, const Layout& layout,
                                   const MemoryRules& rules);

/// Part of it that is in pieces too small to be freed: 2 % of what is allocated at most.
std::int64_t fragment_bytes(std::int64_t allocated, const MemoryRules& rules);

}  // namespace shardwise
