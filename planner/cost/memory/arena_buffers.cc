#include "planner/cost/memory/arena_buffers.h"

#include <algorithm>

#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/memory/unit_room.h"
#include "planner/spec/plan/gradient_reductions.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

/// Whether the head multiplies with the table of the embedding, which is on the same stage.
bool shares_table(const LayerMemory& layer, std::int64_t copied) {
  return layer.role == LayerRole::head && layer.parameters.vocabulary == 0 && copied == 0;
}

/// Gradients of one layer that one all-to-all brings, and their sums.
struct Received {
  std::int64_t elements = 0;
  std::int64_t sums = 0;
  void add(std::int64_t room, std::int64_t ranks) {
    if (ranks <= 1) return;
    const std::int64_t padded = round_up(room, ranks);
    elements = std::max(elements, padded);
    sums = std::max(sums, padded / ranks);
  }
};

}  // namespace

WholeWeights gathered_elements(const LayerParameters& p, const Layout& layout,
                               std::int64_t multiple) {
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const TrainedRoom room = trained_room(p, layout, multiple);
  WholeWeights whole;
  if (ranks.dense > 1) whole = {room.dense + p.frozen, p.narrow_dense};
  if (ranks.routed > 1) {
    whole.elements += room.routed;
    whole.narrow += p.narrow_routed;
  }
  return whole;
}

std::int64_t reduced_elements(const LayerParameters& p, const Layout& layout,
                              std::int64_t multiple) {
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const TrainedRoom room = trained_room(p, layout, multiple);
  return (ranks.dense > 1 ? room.dense : 0) + (ranks.routed > 1 ? room.routed : 0);
}

ArenaBuffers arena_buffers(const StageParts& parts, const StageContext& context) {
  const Layout& layout = *context.layout;
  const MemoryRules& rules = *context.rules;
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  ArenaBuffers arena;
  WholeWeights largest;
  std::int64_t root = 0;
  std::int64_t head = 0;
  std::int64_t unit = 0;
  std::int64_t all = 0;
  Received received;
  // The table of another stage joins the last root: the head, or multi-token prediction after it.
  const bool predicts_more =
      std::any_of(parts.run.begin(), parts.run.begin() + parts.runs,
                  [](const StageParts::Run& run) { return run.layer->role == LayerRole::mtp; });
  const LayerRole with_table = predicts_more ? LayerRole::mtp : LayerRole::head;
  const std::int64_t table =
      unit_room(parts.copied, finest_ranks(layout).dense, rules.shard_multiple);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    const LayerParameters& p = run.layer->parameters;
    const std::int64_t copied = run.layer->role == with_table && ranks.dense > 1 ? table : 0;
    const WholeWeights whole = gathered_elements(p, layout, rules.shard_multiple);
    const std::int64_t reduced = reduced_elements(p, layout, rules.shard_multiple);
    all += reduced * run.count + copied;
    if (is_root(run.layer->role)) {
      arena.roots.elements += whole.elements * run.count + copied;
      arena.roots.narrow += whole.narrow * run.count;
      std::int64_t& staged = shares_table(*run.layer, copied) ? head : root;
      staged = std::max(staged, reduced + copied);
    } else {
      unit = std::max(unit, reduced);
      if (whole.elements > largest.elements) largest = whole;
    }
    const TrainedRoom room = trained_room(p, layout, rules.shard_multiple);
    received.add(room.dense + copied, ranks.dense);
    received.add(room.routed, ranks.routed);
  }
  arena.unit = largest;
  if (placement.parameters == Placement::replicate) arena.roots = arena.unit = {};
  if (rules.fp32_accumulation) {
    arena.received = {received.elements, kNarrowGradientBytes};
    arena.sums = {received.sums, kFp32GradientBytes};
  }
  if (placement.gradients == Placement::replicate) return arena;
  const std::int64_t each = gradient_element_bytes(rules, layout);
  if (!reduces_each_of(layout, context.num_microbatches)) {
    arena.unreduced = {all, each};
  } else {
    arena.root_staged = {root, each};
    arena.head_staged = {head, each};
    arena.unit_staged = {unit, each};
  }
  return arena;
}

StageBuffers stage_buffers_of(const ArenaBuffers& arena) {
  StageBuffers b;
  b.constant = true;
  b.whole = false;
  b.queues = true;
  b.root = arena.roots;
  b.queue = {2 * arena.unit.elements, 2 * arena.unit.narrow};
  b.reduce_buffer = arena.unreduced;
  b.reduce_root = {arena.root_staged.count + arena.head_staged.count, arena.root_staged.bytes_each};
  b.reduce_queue = {2 * arena.unit_staged.count, arena.unit_staged.bytes_each};
  b.received = arena.received;
  b.sums = arena.sums;
  return b;
}

}  // namespace shardwise
