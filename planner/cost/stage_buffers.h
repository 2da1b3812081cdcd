#pragma once

#include <cstdint>

#include "planner/cost/amount.h"
#include "planner/cost/memory.h"

namespace shardwise {

/// Elements of whole weights, and how many of them are gathered in 8 bits.
struct WholeWeights {
  std::int64_t elements = 0;
  std::int64_t narrow = 0;
  Amount wide(const MemoryRules& rules) const { return {elements - narrow, rules.weight_bytes}; }
  Amount slim(const MemoryRules& rules) const { return {narrow, rules.narrow_bytes}; }
  std::int64_t bytes(const MemoryRules& rules) const {
    return wide(rules).bytes() + slim(rules).bytes();
  }
};

/// What moves weights and gradients of a stage between shards and whole, whatever layer runs.
struct StageBuffers {
  bool constant = false;  // all of it exists in forward too: a planned arena
  // Of a reduce-scatter with fp32 accumulation beside backward: what arrives, and its sums.
  Amount received;
  Amount sums;
  bool whole = true;       // parameters are not sharded
  bool queues = false;     // gathers go to a queue or to double buffers, whatever layer runs
  WholeWeights root;       // kept gathered over the step
  WholeWeights queue;      // of a gather queue or of double buffers
  std::int64_t ahead = 0;  // elements of a gather queue besides the unit that runs
  Amount reduce_buffer;    // exists while backward runs, whatever layer
  Amount reduce_root;      // gradients of embedding or head on their way, where apart
  Amount reduce_queue;     // units whose reductions are on their way
  Amount unreduced;        // all gradients, where they wait for the last micro-batch
};
StageBuffers stage_buffers(const StageParts& parts, const StageContext& context);

/// Whether sharded gradients are reduced with the last of several micro-batches alone, from
/// gradients that have been whole until then.
bool gradients_wait(const StageContext& context);

/// Whether anything of the stage is: adapters alone are counted with nothing.
bool trains(const StageParts& parts);

/// Whole weights that exist while a layer runs, beyond the persistent states.
/// Source: docs/memory.md, gathered weights.
struct Gathered {
  WholeWeights unit;    // of the layer that runs
  WholeWeights output;  // the gather output they were copied from, or all that stays gathered
  WholeWeights ahead;   // of the layer that runs next
  WholeWeights root;    // embedding and head, kept over the step
  WholeWeights cast;    // this rank's shard, cast to be sent
  WholeWeights parts;   // of layers before it, kept after forward to be gathered in small groups
  WholeWeights queue;   // units of a queue or of double buffers
  std::int64_t bytes(const MemoryRules& rules) const {
    return unit.bytes(rules) + output.bytes(rules) + ahead.bytes(rules) + root.bytes(rules) +
           cast.bytes(rules) + parts.bytes(rules) + queue.bytes(rules);
  }
};
/// Zero below ZeRO-3, but for the casts of mixed precision.
Gathered gathered_weights_at(const StageBuffers& buffers, const StageParts& parts,
                             const StageContext& context, const StageMoment& moment, bool backward);

/// Gradients on their way from the layers that made them to their shards, besides those of the
/// layer that runs. Source: docs/memory.md, gradient staging.
struct Staging {
  Amount unreduced;
  Amount buffer;
  Amount queue;
  Amount unit;  // input of the reduction of the unit before
  Amount root;  // of embedding or head, where apart
  Amount received;
  Amount sums;
  Amount beside;  // gradients of a later micro-batch, which join those before
  std::int64_t bytes() const {
    return unreduced.bytes() + beside.bytes() + buffer.bytes() + queue.bytes() + unit.bytes() +
           root.bytes() + received.bytes() + sums.bytes();
  }
};
/// A forward pass has none, but for what exists all the time, and what passes before it left to be
/// reduced with the last micro-batch.
Staging staging_at(const StageBuffers& buffers, const StageParts& parts,
                   const StageContext& context, const StageMoment& moment, bool backward);

/// Whether our kernels add gradients to the sum of earlier micro-batches: not under engines that
/// make tensors of each micro-batch's.
bool adds_to_sums(const MemoryRules& rules);

/// Whether a micro-batch's gradients join those of earlier ones as passes make them, and are not
/// reduced on their own.
bool gradients_join(const Layout& layout, std::int64_t num_microbatches);

/// Where our kernels do not add to sums they make each micro-batch's gradients from zeros: those of
/// a micro-batch that joins earlier ones lie beside them while their layer runs, as far as the
/// engine does not make tensors of them anyway. A table that the head shares is there from the head
/// to the embedding.
struct GradientsBeside {
  Amount layer;
  Amount table;  // besides, of all layers but the embedding
};
GradientsBeside gradients_beside(const StageParts& parts, const StageContext& context,
                                 const LayerMemory& layer);

/// Bytes of a gradient that travels by all-to-all, and of its sum.
inline constexpr std::int64_t kNarrowGradientBytes = 2;
inline constexpr std::int64_t kFp32GradientBytes = 4;

/// A reduce-scatter with fp32 accumulation after the last backward pass of a stage, where the
/// engine has a single bucket: all elements of a chunk arrive at once.
/// \returns what arrives; its sums are 1/ranks of it in fp32
Amount received_after_backward(const StageParts& parts, const StageContext& context);

/// Units that a queue holds which takes new ones until at least `capacity` elements are in it, and
/// the unit being worked on; no more elements than `all`.
std::int64_t queued_elements(std::int64_t capacity, std::int64_t unit, std::int64_t all);

}  // namespace shardwise
