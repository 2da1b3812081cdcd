#include "planner/cost/stage_buffers.h"

#include <algorithm>

#include "planner/cost/arena_buffers.h"
#include "planner/cost/held_passes.h"
#include "planner/cost/state_bytes.h"
#include "planner/cost/unit_room.h"
#include "planner/spec/placement.h"
#include "planner/spec/schedule_facts.h"
#include "planner/spec/units.h"

namespace shardwise {
namespace {

/// What is gathered for a layer; frozen weights travel like the others.
Unit unit_of(const StageMoment& moment) {
  const LayerParameters& p = moment.layer->parameters;
  return {p.dense, p.routed, p.narrow_dense + p.narrow_routed, p.frozen};
}

WholeWeights whole(const Unit& unit) { return {unit.gathered(), unit.narrow}; }

WholeWeights whole_stage(const StageParts& parts) {
  return {parts.dense + parts.routed + parts.frozen, parts.narrow_dense + parts.narrow_routed};
}

WholeWeights shard_of(const Unit& unit, const Layout& layout) {
  const std::int64_t dense = std::int64_t{layout.dp_shard} * layout.cp;
  const std::int64_t whole = unit.dense + unit.frozen;
  if (unit.routed == 0) return {ceil_div(whole, dense), unit.narrow / dense};
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const std::int64_t elements = ceil_div(whole, ranks.dense) + ceil_div(unit.routed, ranks.routed);
  return {elements, std::min(elements, unit.narrow / std::min(ranks.dense, ranks.routed))};
}

/// `elements` of units like `unit`.
WholeWeights of_units(std::int64_t elements, const Unit& unit) {
  if (unit.narrow == 0) return {elements, 0};
  const double share = static_cast<double>(unit.narrow) / static_cast<double>(unit.gathered());
  return {elements, static_cast<std::int64_t>(share * static_cast<double>(elements))};
}

/// Of all layers before the one that runs, what a rank keeps after forward: its shards and those of
/// its neighbours in other groups. \pre dense, trained
WholeWeights parts_before(const StageParts& parts, const Layout& layout,
                          const StageMoment& moment) {
  const Unit before = {parts.dense - moment.ready.dense - moment.layer->parameters.dense, 0, 0, 0};
  const std::int64_t shards = std::int64_t{layout.dp_shard} * layout.cp;
  const std::int64_t groups = shards / layout.reshard_after_forward;
  return {shard_of(before, layout).elements * groups, 0};
}

/// FSDP2. Forward: the unsharded parameters of this unit, the gather output they were copied from
/// (kept until the next unit's is waited for) and the next unit's. Backward: the unsharded
/// parameters and the output gathered for the unit before. Where all stays unsharded, the output is
/// there in the first forward pass alone.
Gathered copied_out(const StageParts& parts, const Layout& layout, const StageMoment& moment,
                    bool backward, bool first_pass) {
  Gathered g;
  if (layout.reshard_after_forward != 0 || (first_pass && !backward))
    g.unit = whole(unit_of(moment));
  if (!layout.reshard_after_forward) {
    g.output = whole_stage(parts);
  } else if (backward) {
    g.ahead = whole(moment.next);
  } else {
    g.output = g.unit;
    g.ahead = whole(moment.previous);
  }
  return g;
}

/// A forward pass may be the first of the step: later ones, with others in flight, hold more.
bool nothing_else_in_flight(const StageParts& parts, const StageContext& context,
                            const StageMoment& moment) {
  const SavedChunks saved(parts.chunk_saved);
  const HeldPasses held = held_passes(*context.layout, context.stage, context.num_microbatches,
                                      moment.chunk, false, saved);
  return bytes_of(held, saved) == 0;
}

/// The engine reduces after the last backward pass, in one piece: Megatron's later stages, and all
/// without overlap. Its model chunks are pieces of their own, which is not counted.
bool reduces_whole(const StageContext& context) {
  return context.rules->engine->gradient_buffer == GradientBuffer::contiguous &&
         (context.stage > 0 || !context.layout->overlap_grad_reduce);
}

/// Elements that one all-to-all brings where a reduce-scatter is summed in fp32.
std::int64_t received_elements(const StageParts& parts, const StageContext& context) {
  const EngineProfile& engine = *context.rules->engine;
  const Layout& layout = *context.layout;
  if (engine.gradient_buffer == GradientBuffer::contiguous) {
    if (reduces_whole(context)) return parts.dense + parts.routed;
    const std::int64_t limit =
        std::max(engine.bucket_elements, engine.bucket_elements_per_rank * layout.dp() * layout.cp);
    return std::min(parts.dense + parts.routed, limit);
  }
  return 0;  // engines that work by unit and sum in fp32 plan an arena
}

/// Embedding or head.
bool is_outside(const StageMoment& moment) {
  return moment.layer->role == LayerRole::embedding || moment.layer->role == LayerRole::head;
}

/// Our executor's, whatever the engine: they alone have the residual stream apart in forward too.
bool own_kernels(const LayerMemory& layer) { return layer.forward.residual > 0; }

}  // namespace

Amount received_after_backward(const StageParts& parts, const StageContext& context) {
  if (!context.rules->fp32_accumulation || !reduces_whole(context)) return {};
  return {received_elements(parts, context), kNarrowGradientBytes};
}

std::int64_t queued_elements(std::int64_t capacity, std::int64_t unit, std::int64_t all) {
  if (unit == 0) return 0;
  return std::min(unit * (1 + ceil_div(capacity, unit)), all);
}

bool gradients_wait(const StageContext& context) {
  const Layout& layout = *context.layout;
  return layout.zero_stage >= 2 && context.num_microbatches > 1 &&
         !layout.reduce_every_microbatch &&
         context.rules->engine->gradient_buffer != GradientBuffer::contiguous;
}

bool trains(const StageParts& parts) { return parts.dense + parts.routed > 0; }

StageBuffers stage_buffers(const StageParts& parts, const StageContext& context) {
  const EngineProfile& engine = *context.rules->engine;
  if (plans_buffers(engine)) {
    return stage_buffers_of(arena_buffers(parts, context));
  }
  const Layout& layout = *context.layout;
  const std::int64_t all = parts.dense + parts.routed;
  const std::int64_t block = parts.largest_block.elements();
  StageBuffers b;
  b.whole = layout.zero_stage < 3;
  if (context.rules->fp32_accumulation && !reduces_whole(context)) {
    const std::int64_t elements = received_elements(parts, context);
    b.received = {elements, kNarrowGradientBytes};
    b.sums = {elements / shard_ranks(layout, Placement::shard_inner).dense, kFp32GradientBytes};
  }
  b.reduce_buffer = {engine.reduce_buffer_elements, context.rules->weight_bytes};
  if (gradients_wait(context)) {
    const bool copies = engine.gradient_buffer == GradientBuffer::copy_in;
    b.unreduced = {
        held_elements(parts, *context.rules, layout, Placement::replicate).elements(),
        copies ? context.rules->reduce_bytes : gradient_element_bytes(*context.rules, layout)};
  } else if (layout.zero_stage >= 2 && engine.gradient_buffer == GradientBuffer::unit_queue) {
    const std::int64_t elements = layout.double_buffer
                                      ? 2 * block
                                      : queued_elements(engine.reduce_queue_elements, block, all);
    b.reduce_queue = {elements, gradient_element_bytes(*context.rules, layout)};
  }
  if (b.whole) return b;
  const bool two = layout.double_buffer || engine.gather == GatherBuffer::double_buffer;
  b.queues = two || engine.gather == GatherBuffer::element_queue;
  if (two || engine.keeps_root_gathered) b.root = whole(parts.root);
  const std::int64_t unit = parts.largest_block.gathered();
  if (two) {
    b.queue = of_units(2 * unit, parts.largest_block);
  } else if (b.queues && unit > 0) {
    b.ahead = unit * ceil_div(engine.gather_queue_elements, unit);
  }
  return b;
}

namespace {

/// What a queue holds while a layer runs: its unit, unless that is kept, and those ahead of it.
WholeWeights queued_at(const StageBuffers& buffers, const StageParts& parts,
                       const EngineProfile& engine, const StageMoment& moment, bool backward) {
  if (buffers.constant || buffers.queue.elements > 0) return buffers.queue;
  const bool kept = engine.keeps_root_gathered && is_outside(moment);
  const Unit own = kept ? Unit{} : unit_of(moment);
  std::int64_t left = (backward ? moment.before : moment.after).gathered();
  if (engine.keeps_root_gathered) {
    left -= backward ? moment.outside_before : moment.outside_after;
  }
  return of_units(own.gathered() + std::min(buffers.ahead, left), parts.largest_block);
}

}  // namespace

Gathered gathered_weights_at(const StageBuffers& buffers, const StageParts& parts,
                             const StageContext& context, const StageMoment& moment,
                             bool backward) {
  const MemoryRules& rules = *context.rules;
  const EngineProfile& engine = *rules.engine;
  const Layout& layout = *context.layout;
  Gathered g;
  if (buffers.queues) {
    g.queue = queued_at(buffers, parts, engine, moment, backward);
    g.root = buffers.root;
    return g;
  }
  const bool casts = engine.main_weights == MainWeights::parameter && rules.casts_weights;
  if (buffers.whole) {
    // Whole parameters; mixed precision still casts those of the unit that runs.
    if (casts) g.unit = whole(unit_of(moment));
    return g;
  }
  const Unit unit = unit_of(moment);
  if (engine.gather == GatherBuffer::copy_out) {
    const bool first = nothing_else_in_flight(parts, context, moment);
    g = copied_out(parts, layout, moment, backward, first);
    if (layout.reshard_after_forward == 0 && (backward || !first)) return g;
    if (layout.reshards_to_groups()) {
      g.parts = parts_before(parts, layout, moment);
      if (backward) return g;  // what is gathered was cast before
    }
  } else if (engine.gather == GatherBuffer::rate_limited) {
    // A unit is freed when its gradients arrive: one without waits for the end of backward.
    if (!layout.reshard_after_forward || !trains(parts)) {
      g.output = whole_stage(parts);
      return g;
    }
    const bool in_root = is_outside(moment) && engine.keeps_root_gathered;
    g.root = buffers.root;
    if (!in_root) {
      g.unit = whole(unit);
      g.ahead = whole(moment.next);
    }
  } else {
    return g;
  }
  if (casts) g.cast = shard_of(unit, layout);
  return g;
}

bool adds_to_sums(const MemoryRules& rules) {
  return rules.adds_to_sums && rules.engine->gradient_buffer != GradientBuffer::copy_in;
}

bool gradients_join(const Layout& layout, std::int64_t num_microbatches) {
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const bool leaves = placement.gradients != Placement::replicate &&
                      ranks.dense * ranks.routed > 1 && layout.reduce_every_microbatch;
  return num_microbatches > 1 && !leaves;
}

GradientsBeside gradients_beside(const StageParts& parts, const StageContext& context,
                                 const LayerMemory& layer) {
  const MemoryRules& rules = *context.rules;
  const Layout& layout = *context.layout;
  const bool joins = own_kernels(layer) && layout.pp == 1 &&
                     gradients_join(layout, context.num_microbatches) && !adds_to_sums(rules) &&
                     rules.engine->gradient_buffer != GradientBuffer::copy_in;
  if (!joins) return {};
  const std::int64_t each = gradient_element_bytes(rules, layout);
  GradientsBeside beside;
  const TrainedRoom own = trained_room(layer.parameters, layout, rules.shard_multiple);
  beside.layer = {own.dense + own.routed, each};
  const LayerMemory* embedding = nullptr;
  bool shares = false;
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const LayerMemory& of = *parts.run[static_cast<std::size_t>(r)].layer;
    if (of.role == LayerRole::embedding) embedding = &of;
    shares = shares || (of.role == LayerRole::head && of.parameters.vocabulary == 0);
  }
  if (shares && embedding != nullptr && layer.role != LayerRole::embedding) {
    const TrainedRoom table = trained_room(embedding->parameters, layout, rules.shard_multiple);
    beside.table = {table.dense, each};
  }
  return beside;
}

namespace {

/// Gradients that wait for the last micro-batch. Where all forward passes come first they begin
/// with the backward ones. Looped BFS is done with a chunk before it comes to the next, and so is
/// interleaving where a chunk has one turn of all micro-batches.
Amount unreduced_at(const StageBuffers& buffers, const StageParts& parts,
                    const StageContext& context, const StageMoment& moment, bool backward) {
  const Layout& layout = *context.layout;
  Amount waiting = buffers.unreduced;
  if (layout.pp == 1 || waiting.count == 0) return waiting;
  const bool loops = layout.schedule == PipelineSchedule::looped_bfs;
  const bool one_turn = is_interleaved(layout) && context.num_microbatches <= layout.pp;
  if (facts_of(layout).forward_first && !backward) waiting.count = 0;
  if (loops && backward) {
    waiting.count =
        std::min(waiting.count, parts.chunk_trained[static_cast<std::size_t>(moment.chunk)]);
  }
  if (one_turn) {
    waiting.count = std::min(waiting.count, *std::ranges::max_element(parts.chunk_trained));
  }
  return waiting;
}

}  // namespace

Staging staging_at(const StageBuffers& buffers, const StageParts& parts,
                   const StageContext& context, const StageMoment& moment, bool backward) {
  const MemoryRules& rules = *context.rules;
  Staging staging;
  staging.unreduced = unreduced_at(buffers, parts, context, moment, backward);
  if (!backward && !buffers.constant) return staging;
  staging.buffer = buffers.reduce_buffer;
  staging.queue = buffers.reduce_queue;
  // A queue begins empty with each backward pass.
  if (!buffers.constant && !context.layout->double_buffer) {
    const std::int64_t made = moment.after.elements() + unit_of(moment).elements();
    staging.queue.count = std::min(staging.queue.count, made);
  }
  staging.root = buffers.reduce_root;
  staging.received = buffers.received;
  staging.sums = buffers.sums;
  if (backward) {
    const GradientsBeside beside = gradients_beside(parts, context, *moment.layer);
    staging.beside = {beside.layer.count + beside.table.count, beside.layer.bytes_each};
  }
  const bool by_unit = context.layout->zero_stage >= 2 && staging.bytes() == 0 &&
                       rules.engine->gradient_buffer == GradientBuffer::copy_in;
  // The reduction of the unit before still reads its input.
  if (by_unit) staging.unit = {moment.previous.elements(), rules.reduce_bytes};
  return staging;
}

}  // namespace shardwise
