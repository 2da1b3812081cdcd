#pragma once

#include <cstdint>

#include "planner/cost/memory/amount.h"
#include "planner/cost/memory/bucket_copies.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/unit_queues.h"

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

/// `elements` of units like `unit`, for which a rank has so much `room`: their padding is not
/// narrow.
WholeWeights of_units(std::int64_t elements, const Unit& unit, std::int64_t room);

/// Buffers that move weights and gradients of a stage between shards and whole, whatever runs.
struct StageBuffers {
  bool constant = false;  // all of it exists in forward too: a planned arena
  // Bytes of a reduce-scatter with fp32 accumulation beside backward: what arrives, and its sums.
  Amount received;
  Amount sums;
  bool first_pass = false;  // gathers_in_use_first() holds, and it is that pass
  bool whole = true;        // parameters are not sharded
  bool queues = false;      // gathers go to a queue or to double buffers, whatever layer runs
  WholeWeights root;        // kept gathered over the step
  WholeWeights queue;       // of a gather queue or of double buffers
  WholeWeights parts;       // for gathers in smaller groups, to the end of the step: keeps_parts()
  std::int64_t near_loss = 0;  // elements that are not released before the loss
  Amount reduce_buffer;        // there from the first weight gradient to the end of backward
  BucketUse bucket_use = BucketUse::none;
  bool gradients_leave = false;  // gradients_leave()
  BucketCopies copies;           // as_made
  Amount reduce_root;            // gradients of embedding or head on their way, where apart
  Amount reduce_queue;           // units whose reductions are on their way: two buffers, or …
  bool reduces_queued = false;   // … as many as the queue takes
  UnitQueues units;
  Amount unreduced;  // all gradients, where they wait for the last micro-batch
  /// The pass is one of the first micro-batch of a stage of several, whose gradients join no
  /// others.
  bool first_microbatch = false;
};
StageBuffers stage_buffers(const StageParts& parts, const StageContext& context);

/// What Megatron-FSDP has from one step to the next: embedding and head, whose gathered buckets are
/// refreshed in place, and the two buffers for units that `double_buffer` asks for. Our executor
/// frees them.
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/
/// param_and_grad_buffer.py:4328-4365 (AllGatherPipeline.reset), 704-880 (FixedPoolAllocator).
struct BuffersBetweenSteps {
  WholeWeights root;
  WholeWeights units;
  Amount reductions;
  std::int64_t bytes(const MemoryRules& rules) const {
    return root.bytes(rules) + units.bytes(rules) + reductions.bytes();
  }
};
bool keeps_buffers_between_steps(const MemoryRules& rules);
BuffersBetweenSteps buffers_between_steps(const StageBuffers& buffers, const StageContext& context);

/// Whether a rank has its shard of the gradients, and reduce_buffer(), from the start.
bool keeps_gradient_shards(const EngineProfile& engine, const Layout& layout);

/// Buffer that all reductions go through, one tensor after the other.
Amount reduce_buffer(const MemoryRules& rules, const Layout& layout);

/// Whether sharded gradients are reduced with the last of several micro-batches alone, from
/// gradients that have been whole until then.
bool gradients_wait(const StageContext& context);

/// Whether FSDP2 reduces them then unit by unit, each copied whole into the input of its reduction.
/// Not in pipelines, where that is not counted.
bool reduces_waiting(const StageContext& context);

/// Whether a weight gradient that autograd has made is free once it is in a bucket, or has joined
/// that of earlier micro-batches: nothing is left of a layer's, but the one that is made.
bool gradients_leave(const StageContext& context);

/// Shards that a rank keeps of weights it reshards to smaller groups: one of each of those.
/// \pre layout.reshards_to_groups()
std::int64_t kept_shards(const Layout& layout);

/// joins_root() of its engine.
bool joins_root(const StageContext& context);

/// Whether units are computed with as casts of the optimizer's parameters.
bool casts_units(const MemoryRules& rules);

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
/// Zero below ZeRO-3, but for the casts of mixed precision. \param joined  joined_pass()
Gathered gathered_weights_at(const StageBuffers& buffers, const StageParts& parts,
                             const StageContext& context, const StageMoment& moment, bool backward,
                             bool joined = false);

/// Gradients on their way from the layers that made them to their shards, besides those of the
/// layer that runs. Source: docs/memory.md, gradient staging.
struct Staging {
  Amount unreduced;
  Amount buffer;
  Amount queue;
  Amount unit;    // input of the reduction of the unit before
  Amount root;    // of embedding or head, where apart; of the head, where they wait for each other
  Amount joined;  // of the layer that is done, or of both of those, or of a bucket, in one tensor
  Amount parts;   // of the tensors that a rank has a part of, as far as they are copies
  Amount received;
  Amount sums;
  Amount beside;  // gradients of a later micro-batch, which join those before
  Amount table;   // of a table that embedding and head share, made by the head, and their sum
  std::int64_t bytes() const {
    return unreduced.bytes() + beside.bytes() + buffer.bytes() + queue.bytes() + unit.bytes() +
           root.bytes() + joined.bytes() + parts.bytes() + received.bytes() + sums.bytes() +
           table.bytes();
  }
};
/// Gradients of the head that wait for the embedding's while a layer between them runs: of
/// joins_root() engines.
Amount waiting_root(const StageParts& parts, const StageContext& context,
                    const StageMoment& moment);

/// A forward pass has none, but for what exists all the time, and what passes before it left to be
/// reduced with the last micro-batch. \param joined  joined_pass()
Staging staging_at(const StageBuffers& buffers, const StageParts& parts,
                   const StageContext& context, const StageMoment& moment, bool backward,
                   bool joined = false);

/// The buffer of all reductions in backward. A planned arena has it all the time; DeepSpeed makes
/// it with the first weight gradient and frees it with backward, but under ZeRO-1 not before the
/// last micro-batch.
Amount bucket_buffer(const StageBuffers& buffers, const StageContext& context,
                     const StageMoment& moment, bool joined);
/// staging_at() of such a bucket in backward. \pre buffers.bucket_use is not none
Staging bucket_staging(const StageBuffers& buffers, const StageParts& parts,
                       const StageContext& context, const StageMoment& moment, bool joined);

/// Whether our kernels add gradients to the sum of earlier micro-batches: not under engines that
/// make tensors of each micro-batch's.
bool adds_to_sums(const MemoryRules& rules);

/// Where our kernels do not add to sums they make each micro-batch's gradients from zeros: those of
/// a micro-batch that joins earlier ones lie beside them while their layer runs, as far as the
/// engine does not make tensors of them anyway. A table that the head shares is there from the head
/// to the embedding.
struct GradientsBeside {
  Amount layer;  // of a head with its stage's copy of the token table
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

}  // namespace shardwise
