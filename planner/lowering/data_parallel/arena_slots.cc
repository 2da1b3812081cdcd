#include "planner/lowering/data_parallel/arena_slots.h"

#include "planner/cost/memory/unit_room.h"
#include "planner/lowering/data_parallel/unit_work.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

ArenaSlots::ArenaSlots(const LoweringContext& context, std::int32_t stage, StageBuilder& builder)
    : context_(context), builder_(builder), on_(plans_buffers(context.engine())) {
  if (!on_) return;
  first_ = static_cast<BufferId>(builder.program().buffers.size());
  const StageParts parts = stage_parts(context.plan->model, context.memories,
                                       context.stages[static_cast<std::size_t>(stage)]);
  const ArenaBuffers arena = arena_buffers(parts, context.of_stage(stage));
  const MemoryRules& rules = context.memory_rules;
  const bool gathers = context.placement.parameters != Placement::replicate;
  constexpr auto kStaging = MemoryCategory::gradient_staging;
  const ShardRanks& ranks = context.shards;
  const std::int64_t table =
      unit_room(parts.copied, finest_ranks(context.layout()).dense, rules.shard_multiple);
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    for (const StageLayer& layer : chunk.layers) {
      const LayerParameters& p = context.memories[static_cast<std::size_t>(layer.kind)].parameters;
      const std::int64_t copied = layer.copies_table && ranks.dense > 1 ? table : 0;
      BufferId whole = kNone;
      if (gathers && is_root(layer)) {
        WholeWeights weights = gathered_elements(p, context.layout(), rules.shard_multiple);
        weights.elements += copied;
        whole = make(MemoryCategory::gathered_weights, weights.bytes(rules), layer.layer);
      }
      gathered_roots_.push_back(whole);
      BufferId own = kNone;
      if (arena.unreduced.count > 0) {
        const std::int64_t elements =
            reduced_elements(p, context.layout(), rules.shard_multiple) + copied;
        own = make(kStaging, elements * arena.unreduced.bytes_each, layer.layer);
      }
      unreduced_.push_back(own);
    }
  }
  for (BufferId& unit : units_) {
    unit = make(MemoryCategory::gathered_weights, arena.unit.bytes(rules));
  }
  staged_root_ = make(kStaging, arena.root_staged.bytes());
  staged_head_ = make(kStaging, arena.head_staged.bytes());
  for (BufferId& unit : staged_units_) unit = make(kStaging, arena.unit_staged.bytes());
  received_ = make(kStaging, arena.received.bytes());
  sums_ = make(kStaging, arena.sums.bytes());
}

BufferId ArenaSlots::make(MemoryCategory category, std::int64_t bytes, std::int32_t layer) {
  const BufferId made = builder_.buffer(category, bytes, layer);
  if (made == kNone) return kNone;
  if (!holds_weights(made)) builder_.allocate_with_compute(made);
  last_.push_back(kNone);
  return made;
}

bool ArenaSlots::holds_weights(BufferId buffer) const {
  return builder_.program().buffers[buffer].category == MemoryCategory::gathered_weights;
}

BufferId ArenaSlots::unmade(BufferId buffer) const {
  return buffer != kNone && last_[buffer - first_] == kNone ? buffer : kNone;
}

bool ArenaSlots::is_root(const StageLayer& layer) const {
  return shardwise::is_root(context_.memories[static_cast<std::size_t>(layer.kind)].role);
}

BufferId ArenaSlots::gathered(const StageLayer& layer, std::size_t slot,
                              std::int64_t number) const {
  if (is_root(layer)) return gathered_roots_[slot];
  return units_[static_cast<std::size_t>(number % 2)];
}

BufferId ArenaSlots::staged(const StageLayer& layer, std::size_t slot, std::int64_t number) const {
  if (unreduced_[slot] != kNone) return unreduced_[slot];
  if (staged_table(layer) != kNone) return staged_head_;
  if (is_root(layer)) return staged_root_;
  return staged_units_[static_cast<std::size_t>(number % 2)];
}

BufferId ArenaSlots::staged_table(const StageLayer& layer) const {
  const LayerRole role = context_.memories[static_cast<std::size_t>(layer.kind)].role;
  return role == LayerRole::head && staged_head_ != kNone ? staged_root_ : kNone;
}

void ArenaSlots::touch(BufferId buffer, OpId op) {
  if (buffer != kNone && op != kNone) last_[buffer - first_] = op;
}

void ArenaSlots::finish() {
  const OpId passed = builder_.last(Stream::compute);
  const OpId reduced = builder_.last(Stream::reduce_scatter);
  for (std::size_t i = 0; i < last_.size(); ++i) {
    const auto buffer = static_cast<BufferId>(first_ + i);
    const bool weights = holds_weights(buffer);
    builder_.also_frees(weights || reduced == kNone ? passed : reduced, buffer);
  }
}

}  // namespace shardwise
