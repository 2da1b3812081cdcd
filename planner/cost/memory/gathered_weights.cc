#include "planner/cost/memory/stage_buffers.h"

#include <algorithm>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/schedule/held_passes.h"
#include "planner/spec/plan/placement.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

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

/// Of all layers before the one that runs, what a rank keeps after forward: its shards and those of
/// its neighbours in other groups. \pre dense, trained
WholeWeights parts_before(const StageParts& parts, const Layout& layout,
                          const StageMoment& moment) {
  const std::int64_t kept =
      moment.layer->role == LayerRole::embedding ? 0 : moment.root_unit;  // whole
  const Unit before = {parts.dense - moment.ready.dense - moment.layer->parameters.dense - kept, 0,
                       0, 0};
  return {shard_of(before, layout).elements * kept_shards(layout), 0};
}

/// Elements that DeepSpeed has not released since the first forward pass of a step gathered them:
/// they have no second shard yet. The first pass of a job releases each layer when it has run; a
/// later one keeps what is near the loss gathered through it.
std::int64_t unreleased(const StageBuffers& buffers, const StageMoment& moment, bool backward) {
  const bool head = moment.layer->role == LayerRole::head;
  const std::int64_t to_come = gathered_unit(*moment.layer).gathered() + moment.after.gathered();
  if (buffers.first_pass) {
    const bool at_loss = head && moment.instant == Instant::fullest;
    return backward || at_loss ? 0 : to_come;
  }
  const std::int64_t near = buffers.near_loss - moment.tied_table;
  if (!backward) return std::max(to_come, near);
  return std::max(head ? to_come : 0, near - moment.after.gathered());
}

/// The second shards of DeepSpeed's hpZ: of what the first micro-batch has released, and of all
/// layers in later ones.
/// \pre nothing is frozen or routed
WholeWeights parts_so_far(const StageBuffers& buffers, const StageParts& parts,
                          const StageContext& context, const StageMoment& moment, bool backward) {
  if (context.num_microbatches > 1 || buffers.parts.elements == 0) return buffers.parts;
  const std::int64_t whole =
      std::clamp<std::int64_t>(unreleased(buffers, moment, backward), 0, parts.dense);
  if (whole == 0) return buffers.parts;
  const Unit done = {parts.dense - whole, 0, 0, 0};
  return {shard_of(done, *context.layout).elements * kept_shards(*context.layout), 0};
}

/// Whether the layer before a block is an embedding, or there is none.
bool embedding_next(const StageMoment& moment) {
  return moment.before.gathered() == moment.outside_before;
}

/// FSDP2. Forward: the unsharded parameters of this unit and the gather output they were copied
/// from, kept until the next unit's is waited for. The host makes room for that one when this unit
/// is resharded, if it is; our executor has it while the unit runs. Backward: the unsharded
/// parameters and the output gathered for the unit before. Where all stays unsharded, the output is
/// there in the first forward pass alone; backward reshards unit by unit, but in a pipeline.
///
/// While the loss runs the last output is gone and the unit before is not asked for yet: backward's
/// hook is on the head's output. Norm and head are one unit of two modules: when the head's
/// gradients leave, its weights are resharded and gathered once more for the norm's backward pass.
/// Before a block runs backward it is copied out of the output, and experts that are cut along
/// dimension 1 through a copy of theirs; then the unit before is gathered.
/// A table that the head works with too belongs to the root, which stays whole from forward to
/// backward, and so do positions. Source:
/// pytorch@v2.15.0:torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, pre_backward and
/// post_backward; _fsdp_state.py, _lazy_init.
Gathered copied_out(const StageParts& parts, const Layout& layout, const StageMoment& moment,
                    bool backward, bool first_pass, bool waited) {
  Gathered g;
  const bool outer = moment.layer->role == LayerRole::embedding;
  const bool reduces = moment.instant == Instant::reduction;
  const bool at_loss = moment.layer->loss_apart && moment.instant == Instant::fullest;
  const bool resharded = reduces && (waited || moment.layer->role != LayerRole::head);
  const Unit own = resharded ? Unit{} : gathered_unit(*moment.layer);
  if (layout.reshard_after_forward == 0) {
    const bool has_output = first_pass && !backward && !at_loss;
    if (has_output) g.unit = whole(own);
    if (backward && layout.pp == 1) {
      g.output = whole(moment.before);
      g.unit = whole(own);
    } else {
      g.output = whole_stage(parts);
    }
    return g;
  }
  g.unit = whole(own);
  if (!outer) g.root = {moment.root_unit, 0};
  if (at_loss || (reduces && outer)) return g;
  if (reduces && !resharded) {
    g.output = g.unit;
  } else if (moment.instant == Instant::copied_out) {
    g.output = g.unit;
    g.output.elements += moment.layer->parameters.cut_by_rows;
  } else if (backward) {
    g.ahead = whole(moment.next);
    const bool there = !outer && embedding_next(moment) && !own_kernels(*moment.layer);
    if (there) g.ahead.elements -= g.root.elements;
  } else {
    g.output = moment.tied_table > 0 && moment.layer->role == LayerRole::head ? whole(moment.next)
                                                                              : g.unit;
    const bool stays = outer && moment.tied_table > 0;
    if (stays || own_kernels(*moment.layer)) g.ahead = whole(moment.previous);
  }
  return g;
}

/// Embedding or head.
bool is_outside(const StageMoment& moment) {
  return moment.layer->role == LayerRole::embedding || moment.layer->role == LayerRole::head;
}

/// At most two units are on their way, the one that runs and the next; but the root is there from
/// one end of a pass to the other.
void add_units(Gathered& g, const StageBuffers& buffers, const StageMoment& moment) {
  g.unit = whole(gathered_unit(*moment.layer));
  if (!embedding_next(moment) || buffers.root.elements == 0) g.ahead = whole(moment.next);
}

/// FSDP1's NO_SHARD: mixed precision casts whole parameters by unit, as other strategies gather
/// them. The root's casts are gone after forward and made anew when its output has its gradient, so
/// that the loss runs without them.
/// Source: pytorch@v2.15.0:torch/distributed/fsdp/_flat_param.py:1806, _runtime_utils.py,
/// _reshard.
Gathered whole_casts(const StageBuffers& buffers, const StageMoment& moment) {
  Gathered g;
  if (moment.layer->loss_apart && moment.instant == Instant::fullest) return g;
  g.root = buffers.root;
  if (!is_outside(moment)) add_units(g, buffers, moment);
  return g;
}

/// Autocast casts a weight when a product first reads it and keeps the cast to the end of the
/// model's forward pass; what backward reads stays until then. A block that runs again casts its
/// own anew. The look-up in a token table reads no cast.
/// \pre no pipeline
/// Source: pytorch@v2.15.0:aten/src/ATen/autocast_mode.cpp, cached_cast and clear_cache.
Gathered autocasts(const StageMoment& moment, const Layout& layout, bool backward) {
  Gathered g;
  const bool outer = moment.layer->role == LayerRole::embedding;
  if (outer) return g;
  g.unit = whole(gathered_unit(*moment.layer));
  if (moment.layer->role == LayerRole::head) g.unit.elements += moment.tied_table;
  const bool again = backward && layout.recompute == Recompute::full;
  if (!again) g.parts = {moment.before.gathered() - moment.outside_before, moment.before.narrow};
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

/// Elements of the weights that are in use when a bucket is reduced.
std::int64_t in_use_at_reduction(const StageBuffers& buffers, const StageMoment& moment) {
  const BucketCopies::Reduction* reduction = buffers.copies.at(moment);
  return reduction != nullptr ? reduction->weights : 0;
}

/// A block that runs again before its backward pass.
bool runs_again(const StageMoment& moment, const Layout& layout) {
  return layout.recompute == Recompute::full && !moment.whole && !is_outside(moment);
}

/// Elements of whole tensors that a full queue has while a block runs backward: its own, and those
/// of the layers before it in their order.
std::int64_t whole_tensors(const StageParts& parts, const EngineProfile& engine,
                           const StageMoment& moment) {
  std::int64_t sum = 0;
  std::int64_t before = parts.dense + parts.routed + parts.frozen;  // the layer that is looked at
  for (std::size_t r = parts.in_order.size(); r-- > 0;) {
    const LayerParameters& p = parts.in_order[r].layer->parameters;
    for (std::int32_t i = 0; i < parts.in_order[r].count; ++i) {
      before -= p.dense + p.routed + p.frozen;
      if (before > moment.before.gathered()) continue;
      const bool own = before == moment.before.gathered();
      sum += p.frozen;
      for (const TensorGroup& tensor : p.in_order) {
        for (std::int64_t each = 0; each < tensor.count; ++each) {
          if (!own && sum >= engine.gather_queue_elements) return sum;
          sum += tensor.rows * tensor.row_elements;
        }
      }
    }
  }
  return sum;
}

/// What a queue holds while a layer runs: its unit, unless that is kept, and those ahead of it. A
/// block of DeepSpeed's that runs again has waited then for all groups with a tensor of its own:
/// those tensors are there, and tensors ahead on their way.
WholeWeights queued_at(const StageBuffers& buffers, const StageParts& parts,
                       const StageContext& context, const StageMoment& moment, bool backward,
                       bool joined) {
  const EngineProfile& engine = *context.rules->engine;
  if (buffers.constant || buffers.queue.elements > 0) return buffers.queue;
  if (engine.prefetch_elements > 0 && backward && runs_again(moment, *context.layout)) {
    return {whole_tensors(parts, engine, moment), 0};
  }
  std::int64_t own = buffers.units.gathered_by(moment);
  if (is_outside(moment)) {
    if (engine.keeps_root_gathered) own = 0;
    if (joined) own = in_use_at_reduction(buffers, moment);
  }
  return of_units(own + buffers.units.ahead(moment, backward), parts.largest_block,
                  buffers.units.block().gathered);
}

}  // namespace

Gathered gathered_weights_at(const StageBuffers& buffers, const StageParts& parts,
                             const StageContext& context, const StageMoment& moment, bool backward,
                             bool joined) {
  const MemoryRules& rules = *context.rules;
  const EngineProfile& engine = *rules.engine;
  const Layout& layout = *context.layout;
  Gathered g;
  g.parts = parts_so_far(buffers, parts, context, moment, backward);
  if (buffers.first_pass) {
    g.queue.elements = joined && !runs_again(moment, layout) ? in_use_at_reduction(buffers, moment)
                                                             : tensor_in_use(moment, layout);
    return g;
  }
  if (buffers.queues) {
    g.queue = queued_at(buffers, parts, context, moment, backward, joined);
    const bool copied = engine.prefetch_elements > 0 && !(backward && runs_again(moment, layout));
    if (!buffers.constant && copied) {
      g.output.elements = buffers.units.group_output(moment, backward);
    }
    g.root = buffers.root;
    return g;
  }
  const bool casts = casts_units(rules);
  if (buffers.whole) {
    if (joins_root(context)) return casts ? whole_casts(buffers, moment) : g;
    if (!casts) return g;
    if (engine.keeps_buckets) return autocasts(moment, layout, backward);
    g.unit = whole(gathered_unit(*moment.layer));
    return g;
  }
  const Unit unit = gathered_unit(*moment.layer);
  if (engine.gather == GatherBuffer::copy_out) {
    const bool first = nothing_else_in_flight(parts, context, moment);
    g = copied_out(parts, layout, moment, backward, first, reduces_waiting(context));
    // The cast of a shard is gone when its gather is issued; our arena has it to the gather's end.
    if (!own_kernels(*moment.layer)) {
      if (layout.reshards_to_groups()) g.parts = parts_before(parts, layout, moment);
      return g;
    }
    if (layout.reshard_after_forward == 0 && (backward || !first)) return g;
    if (layout.reshards_to_groups()) {
      g.parts = parts_before(parts, layout, moment);
      if (backward) return g;  // what is gathered was cast before
    }
  } else if (engine.gather == GatherBuffer::rate_limited) {
    // A unit is freed when its gradients arrive or, where none is trained, that of its input.
    if (!layout.reshard_after_forward) {
      g.output = whole_stage(parts);
      // Each unit is freed in backward all the same, but for the root.
      if (backward) {
        g.output.elements -= moment.after.gathered() - moment.outside_after;
        g.output.narrow -= moment.after.narrow;
      }
      return g;
    }
    const bool in_root = is_outside(moment) && engine.keeps_root_gathered;
    g.root = buffers.root;
    if (!in_root) add_units(g, buffers, moment);
    return g;  // the cast shard is freed as soon as the gather is issued
  } else {
    return g;
  }
  if (casts) g.cast = shard_of(unit, layout);
  return g;
}

}  // namespace shardwise
