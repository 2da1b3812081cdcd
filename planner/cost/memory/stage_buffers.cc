#include "planner/cost/memory/stage_buffers.h"

#include <algorithm>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/arena_buffers.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/memory/unit_room.h"
#include "planner/schedule/gathers_once.h"
#include "planner/schedule/held_passes.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/gradient_reductions.h"
#include "planner/spec/plan/placement.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

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
    return std::min(parts.dense + parts.routed, bucket_limit(engine, layout));
  }
  return 0;  // engines that work by unit and sum in fp32 plan an arena
}

/// Elements that DeepSpeed needs again within stage3_max_reuse_distance, whose default is that of
/// the queue, counted from the end of forward: a tensor lies twice as far from its backward pass as
/// from the loss. Source:
/// deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/partitioned_param_coordinator.py
/// (__params_to_release).
std::int64_t near_loss(const StageParts& parts, const EngineProfile& engine) {
  std::int64_t after = 0;
  for (std::size_t r = parts.in_order.size(); r-- > 0;) {
    const std::vector<TensorGroup>& tensors = parts.in_order[r].layer->parameters.in_order;
    for (std::int32_t layer = 0; layer < parts.in_order[r].count; ++layer) {
      for (std::size_t t = tensors.size(); t-- > 0;) {
        for (std::int64_t each = 0; each < tensors[t].count; ++each) {
          if (2 * after > engine.gather_queue_elements) return after;
          after += tensors[t].rows * tensors[t].row_elements;
        }
      }
    }
  }
  return after;
}

}  // namespace

Amount received_after_backward(const StageParts& parts, const StageContext& context) {
  if (!context.rules->fp32_accumulation || !reduces_whole(context)) return {};
  return {received_elements(parts, context), kNarrowGradientBytes};
}

bool keeps_gradient_shards(const EngineProfile& engine, const Layout& layout) {
  return engine.keeps_gradient_shards && layout.zero_stage >= 3;
}

Amount reduce_buffer(const MemoryRules& rules, const Layout& layout) {
  const EngineProfile& engine = *rules.engine;
  if (layout.zero_stage == 0) return {};
  const bool two =
      engine.overlap_doubles_buffer && layout.zero_stage < 3 && layout.overlap_grad_reduce;
  return {(two ? 2 : 1) * engine.reduce_buffer_elements, rules.weight_bytes};
}

bool gradients_wait(const StageContext& context) {
  const Layout& layout = *context.layout;
  return shards_gradients(layout) && !reduces_each_of(layout, context.num_microbatches) &&
         context.rules->engine->gradient_buffer != GradientBuffer::contiguous;
}

bool reduces_waiting(const StageContext& context) {
  return context.layout->pp == 1 && gradients_wait(context) && !joins_root(context) &&
         context.rules->engine->gather == GatherBuffer::copy_out && !context.rules->step_block;
}

bool gradients_leave(const StageContext& context) {
  const Layout& layout = *context.layout;
  if (context.rules->engine->gradient_buffer != GradientBuffer::copy_in) return false;
  if (bucket_use(context) == BucketUse::as_made) return true;
  const bool join = layout.zero_stage < 2 && context.num_microbatches > 1;
  return (join || gradients_wait(context)) && !joins_root(context);
}

bool keeps_buffers_between_steps(const MemoryRules& rules) {
  return has_unit_queues(*rules.engine) && !rules.step_block;
}

BuffersBetweenSteps buffers_between_steps(const StageBuffers& buffers,
                                          const StageContext& context) {
  if (!keeps_buffers_between_steps(*context.rules)) return {};
  BuffersBetweenSteps kept;
  kept.root = buffers.root;
  if (context.layout->double_buffer) {
    kept.units = buffers.queue;
    kept.reductions = buffers.reduce_queue;
  }
  return kept;
}

std::int64_t kept_shards(const Layout& layout) {
  return std::int64_t{layout.dp_shard} * layout.cp / layout.reshard_after_forward;
}

bool joins_root(const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  return joins_root(*rules.engine, *context.layout, rules.step_block);
}

bool casts_units(const MemoryRules& rules) {
  return rules.engine->main_weights == MainWeights::parameter && rules.casts_weights;
}

WholeWeights of_units(std::int64_t elements, const Unit& unit, std::int64_t room) {
  if (unit.narrow == 0) return {elements, 0};
  const double share = static_cast<double>(unit.narrow) / static_cast<double>(room);
  return {elements, static_cast<std::int64_t>(share * static_cast<double>(elements))};
}

StageBuffers stage_buffers(const StageParts& parts, const StageContext& context) {
  const EngineProfile& engine = *context.rules->engine;
  if (plans_buffers(engine)) {
    return stage_buffers_of(arena_buffers(parts, context));
  }
  const Layout& layout = *context.layout;
  StageBuffers b;
  b.whole = layout.zero_stage < 3;
  if (context.rules->fp32_accumulation && !reduces_whole(context)) {
    const std::int64_t elements = received_elements(parts, context);
    b.received = {elements, kNarrowGradientBytes};
    b.sums = {elements / shard_ranks(layout, Placement::shard_inner).dense, kFp32GradientBytes};
  }
  if (!keeps_gradient_shards(engine, layout)) {
    b.reduce_buffer = reduce_buffer(*context.rules, layout);
  }
  b.bucket_use = bucket_use(context);
  b.gradients_leave = gradients_leave(context);
  if (b.bucket_use == BucketUse::as_made) b.copies = BucketCopies(parts, context);
  if (gradients_wait(context)) {
    const bool copies = engine.gradient_buffer == GradientBuffer::copy_in;
    b.unreduced = {
        held_elements(parts, *context.rules, layout, Placement::replicate).elements(),
        copies ? context.rules->reduce_bytes : gradient_element_bytes(*context.rules, layout)};
  } else if (layout.zero_stage >= 2 && engine.gradient_buffer == GradientBuffer::unit_queue) {
    b.units = UnitQueues(parts, engine, layout);
    b.reduces_queued = !layout.double_buffer;
    b.reduce_queue = {layout.double_buffer ? b.units.buffers() * b.units.block().trained : 0,
                      gradient_element_bytes(*context.rules, layout)};
  }
  if (b.whole) {
    if (casts_units(*context.rules)) b.root = {parts.root.gathered(), parts.root.narrow};
    return b;
  }
  const bool two = layout.double_buffer || engine.gather == GatherBuffer::double_buffer;
  b.queues = two || engine.gather == GatherBuffer::element_queue;
  if (b.queues) b.units = UnitQueues(parts, engine, layout);
  if (keeps_parts(layout, engine)) {
    const Unit shard = held_elements(parts, *context.rules, layout, Placement::shard_inner);
    b.parts.elements = shard.gathered() * kept_shards(layout);
    b.near_loss = near_loss(parts, engine);
  }
  if (two || engine.keeps_root_gathered) {
    b.root = {b.queues ? b.units.outside().gathered : parts.root.gathered(), parts.root.narrow};
  }
  if (two)
    b.queue = of_units(b.units.buffers() * b.units.block().gathered, parts.largest_block,
                       b.units.block().gathered);
  return b;
}

bool adds_to_sums(const MemoryRules& rules) {
  return rules.adds_to_sums && rules.engine->gradient_buffer != GradientBuffer::copy_in;
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

Amount waiting_root(const StageParts& parts, const StageContext& context,
                    const StageMoment& moment) {
  const MemoryRules& rules = *context.rules;
  if (!joins_root(context) || gradients_wait(context)) return {};
  return {std::min(moment.outside_after, parts.root.elements()), rules.weight_bytes};
}

namespace {

/// The input of the reduction that FSDP2 keeps from a micro-batch to the next: its first layer's.
Amount kept_reduction(const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const bool each = context.num_microbatches > 1 && !gradients_wait(context);
  if (!rules.engine->keeps_last_reduction || !each || parts.in_order.empty()) return {};
  const LayerParameters& first = parts.in_order.front().layer->parameters;
  return {first.dense + first.routed, rules.reduce_bytes};
}

/// Whether a layer after this one has reduced its gradients: what the head makes belongs to the
/// root's unit, which is the last, where the two share a table.
bool reduced_yet(const StageMoment& moment) {
  const std::int64_t waits = moment.tied_table > 0 ? moment.outside_after : 0;
  return moment.ready.elements() > waits;
}

}  // namespace

Staging staging_at(const StageBuffers& buffers, const StageParts& parts,
                   const StageContext& context, const StageMoment& moment, bool backward,
                   bool joined) {
  const MemoryRules& rules = *context.rules;
  Staging staging;
  staging.unreduced = unreduced_at(buffers, parts, context, moment, backward);
  if (!backward && !buffers.constant) {
    staging.queue = buffers_between_steps(buffers, context).reductions;
    staging.unit = kept_reduction(parts, context);
    return staging;
  }
  if (buffers.bucket_use != BucketUse::none) {
    return bucket_staging(buffers, parts, context, moment, joined);
  }
  const std::int64_t elements = moment.layer->parameters.dense + moment.layer->parameters.routed;
  if (reduces_waiting(context) && moment.instant == Instant::reduction) {
    staging.unreduced.count -= moment.ready.elements();
    staging.unit = {elements, rules.reduce_bytes};
    return staging;
  }
  staging.buffer = bucket_buffer(buffers, context, moment, joined);
  staging.queue = buffers.reduce_queue;
  staging.root = buffers.reduce_root;
  if (buffers.reduces_queued) {
    staging.queue.count = buffers.units.reducing(moment);
  } else if (!buffers.constant && staging.queue.count > 0) {
    staging.root = {buffers.units.reducing_outside(moment), staging.queue.bytes_each};
  }
  staging.received = buffers.received;
  staging.sums = buffers.sums;
  if (backward && !buffers.first_microbatch) {
    const GradientsBeside beside = gradients_beside(parts, context, *moment.layer);
    staging.beside = {beside.layer.count + beside.table.count, beside.layer.bytes_each};
  }
  const bool by_unit = (context.layout->zero_stage >= 2 || joins_root(context)) &&
                       staging.bytes() == 0 && rules.engine->reduce_buffer_elements == 0 &&
                       rules.engine->gradient_buffer == GradientBuffer::copy_in;
  // The sum of a table's gradients is there alone when autograd joins it with the root's others.
  const bool joins_table = joined && moment.layer->role == LayerRole::embedding;
  if (backward && !joins_table) staging.table = moment.tied_gradients;
  if (!by_unit) return staging;
  if (!joins_root(context)) {
    // The reduction of the unit before still reads its input.
    const bool own = moment.instant == Instant::reduction;
    staging.unit = {own ? elements : moment.previous.elements(), rules.reduce_bytes};
    if (!own && !reduced_yet(moment)) staging.unit = kept_reduction(parts, context);
    return staging;
  }
  staging.root = waiting_root(parts, context, moment);
  if (joins_table) {
    staging.joined = {parts.root.elements(), rules.reduce_bytes};
  } else if (joined && is_block(moment.layer->role)) {
    staging.joined = {elements, rules.reduce_bytes};
  }
  return staging;
}

}  // namespace shardwise
