#pragma once

#include <cstdint>

#include "planner/cost/layer/shard_ranks.h"
#include "planner/cost/memory/amount.h"
#include "planner/cost/memory/memory.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

/// Trained elements of a stage that one rank holds of a state, padded as the engine pads.
/// \param multiple  shard_multiple: every rank's piece of a unit has a multiple of so many
/// Source: docs/memory.md, padding.
Unit placed_elements(const StageParts& parts, const EngineProfile& engine, const Layout& layout,
                     Placement placement, std::int64_t multiple);

/// Elements of a state a rank has room for: placed_elements(), or, where units end with the last
/// piece (MemoryRules::whole_pieces), all pieces of the most finely cut state that it has.
Unit held_elements(const StageParts& parts, const MemoryRules& rules, const Layout& layout,
                   Placement placement);

/// Bytes an optimizer step holds and frees, at its fullest.
struct StepTensors {
  Amount gradients;         // made in backward: a rank's, or those of tensors it has a part of
  Amount joined;            // copy of several that the optimizer steps on at once, in one tensor
  Amount cast;              // main-dtype copies for the optimizer: all, or of a sub-group
  Amount squares;           // fp64 copy of the largest one, for the norm of all
  bool has_moments = true;  // the first step's: whether it has made them by then
  std::int64_t bytes() const {
    return gradients.bytes() + joined.bytes() + cast.bytes() + squares.bytes();
  }
};

/// The states of one stage on one rank, in elements of so many bytes.
/// Source: Rajbhandari et al., "ZeRO" (arXiv:1910.02054), section 3 and figure 1, and what the
/// engine adds to it (docs/memory.md).
struct StageStates {
  Amount weights;         // in compute dtype, of trained elements
  Amount narrow_weights;  // of those kept in 8 bits
  Amount frozen_weights;  // of elements without gradients
  Amount router_buffers;  // biases that even out the load of experts, and counts of their tokens
  Amount main_weights;
  Amount gradients;       // a buffer there from the start
  Amount late_gradients;  // made in backward, freed when the step is done
  Amount moments;
  Amount narrow_moments;  // of those in 8 bits
  Amount moment_scales;   // scales of their blocks, and the values that 8 bits stand for
  Amount reduce_buffer;   // of all reductions, where it is there from the start
  StepTensors first_step;
  StepTensors steady_step;
  Amount flat_gradients;      // copy made for the reduction
  Amount received_gradients;  // or what an all-to-all brings in its place, after the last pass
  Amount on_host;             // offloaded: main weights, moments and gradients of the same width;
                              // or moments in managed memory
  Amount step_scratch;        // temporaries of the optimizer step
  Amount narrow_casts;        // casts for products in 8 bits, from the first pass on
  Amount narrow_scales;       // and their scales
  /// Bytes of all moments on the GPU.
  std::int64_t moment_bytes() const {
    return moments.bytes() + narrow_moments.bytes() + moment_scales.bytes();
  }
};
/// Bytes of a gradient in the buffer that weight gradients are added to.
std::int64_t gradient_element_bytes(const MemoryRules& rules, const Layout& layout);
/// Bytes of a main weight beside its compute weight: 2 where the two share its upper half.
std::int64_t main_element_bytes(const MemoryRules& rules, const Layout& layout);
/// Whether the first optimizer step makes the moments.
bool moments_are_late(const MemoryRules& rules, const Layout& layout);
StageStates stage_states(const StageParts& parts, const StageContext& context);

}  // namespace shardwise
