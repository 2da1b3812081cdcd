#include "planner/cost/memory/unit_queues.h"

#include <algorithm>
#include <span>
#include <vector>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/memory/unit_room.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

/// Elements of the largest group of tensors that DeepSpeed gathers ahead in one flat tensor: of
/// `layers` with these tensors one after the other, neighbours until there are `enough`. A tensor
/// that is enough by itself has none.
std::int64_t largest_flat_group(std::span<const TensorGroup> in_order, std::int64_t layers,
                                std::int64_t enough) {
  std::vector<std::int64_t> tensors;
  for (const TensorGroup& each : in_order) {
    tensors.insert(tensors.end(), static_cast<std::size_t>(each.count),
                   each.rows * each.row_elements);
  }
  std::int64_t largest = 0;
  std::int64_t group = 0;
  std::size_t end = 0;
  const std::size_t all = tensors.size() * static_cast<std::size_t>(layers);
  for (std::size_t begin = 0; begin < tensors.size(); ++begin) {
    for (; group < enough && end < all; ++end) {
      group += tensors[end % tensors.size()];
    }
    if (end > begin + 1) largest = std::max(largest, group);
    group -= tensors[begin];
  }
  return largest;
}

}  // namespace

bool has_unit_queues(const EngineProfile& engine) {
  return engine.gather == GatherBuffer::element_queue &&
         engine.gradient_buffer == GradientBuffer::unit_queue;
}

bool gathers_in_use_first(const StageContext& context) {
  return context.rules->engine->prefetch_elements > 0 && context.layout->zero_stage >= 3 &&
         context.num_microbatches == 1;
}

std::int64_t tensor_in_use(const StageMoment& moment, const Layout& layout) {
  const LayerMemory& layer = *moment.layer;
  const LayerParameters& p = layer.parameters;
  if (layer.role == LayerRole::head && moment.instant == Instant::fullest) return 0;
  const bool again = layout.recompute == Recompute::full && !moment.whole;
  if (again && is_block(layer.role)) return p.dense + p.routed + p.frozen;
  std::int64_t largest = layer.role == LayerRole::head ? moment.tied_table : 0;
  for (const TensorGroup& tensor : p.in_order) {
    largest = std::max(largest, tensor.rows * tensor.row_elements);
  }
  return largest;
}

QueueCapacity queue_capacity(const EngineProfile& engine, const Layout& layout,
                             std::int64_t mean_unit) {
  std::int64_t suggested = 0;
  if (has_unit_queues(engine)) {
    suggested = layout.zero_stage >= 3 ? 2 * mean_unit : bucket_limit(engine, layout);
  }
  return {std::max(engine.gather_queue_elements, suggested / 2),
          std::max(engine.reduce_queue_elements, suggested)};
}

void MeanUnit::add(const LayerMemory& layer, std::int64_t count) {
  if (is_outside(layer.role)) return;
  const LayerParameters& p = layer.parameters;
  sum_ += (p.dense + p.routed + p.frozen) * count;
  units_ += count;
}

std::int64_t mean_unit(const StageParts& parts) {
  MeanUnit mean;
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    mean.add(*run.layer, run.count);
  }
  return mean.elements();
}

WholeUnit whole_unit(const LayerParameters& p, const EngineProfile& engine, const Layout& layout) {
  if (!pads_whole_units(engine, layout)) return {p.dense + p.routed, p.dense + p.routed + p.frozen};
  const ShardRanks ranks = finest_ranks(layout);
  const std::int64_t trained = p.chunks.padded(ranks.dense) + p.routed_chunks.padded(ranks.routed);
  const ShardRanks inner = shard_ranks(layout, Placement::shard_inner);
  return {trained, trained + round_up(p.frozen, inner.dense)};
}

UnitQueues::UnitQueues(const StageParts& parts, const EngineProfile& engine, const Layout& layout)
    : engine_(&engine),
      layout_(&layout),
      capacity_(queue_capacity(engine, layout, mean_unit(parts))) {
  std::int64_t frozen = 0;
  const bool fills = fills_root_buckets(engine, layout);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    const LayerParameters& p = run.layer->parameters;
    const WholeUnit whole = whole_unit(p, engine, layout);
    if (engine.prefetch_elements > 0 && !is_outside(run.layer->role)) {
      // The list in order has trained tensors alone.
      const std::span<const TensorGroup> all(p.group.data(), static_cast<std::size_t>(p.groups));
      const std::span<const TensorGroup> tensors = p.frozen > 0 ? all : std::span(p.in_order);
      largest_group_ = std::max(largest_group_,
                                largest_flat_group(tensors, run.count, engine.prefetch_elements));
    }
    if (is_outside(run.layer->role)) {
      if (!fills) outside_.trained += whole.trained * run.count;
      outside_.gathered += (whole.gathered - (fills ? whole.trained : 0)) * run.count;
      frozen += p.frozen * run.count;
    } else {
      blocks_ += run.count;
      if (p.dense + p.routed + p.frozen > bare_.gathered()) {
        bare_ = {p.dense, p.routed, 0, p.frozen};
        block_ = whole;
      }
    }
    if (run.layer->role == LayerRole::head) {
      head_ = p.dense + p.routed + parts.copied;
      head_room_ = fills ? 0 : whole.trained + parts.copied;
    }
    if (run.layer->role == LayerRole::embedding && !fills) embedding_room_ = whole.trained;
  }
  if (fills) {
    add_root_buckets(parts);
  } else {
    outside_.trained += parts.copied;
    outside_.gathered += parts.copied;
  }
  outside_.gathered += parts.root.frozen - frozen;
}

void UnitQueues::add_root_buckets(const StageParts& parts) {
  const auto role = [&](std::size_t run) { return parts.in_order[run].layer->role; };
  for (const RootBucket& bucket : root_buckets(parts, *engine_, *layout_)) {
    outside_.trained += bucket.padded;
    outside_.gathered += bucket.padded;
    const bool with_embedding = role(bucket.first) == LayerRole::embedding;
    (with_embedding ? embedding_room_ : head_room_) += bucket.padded;
    if (with_embedding && role(bucket.last) != LayerRole::embedding) waiting_ += bucket.padded;
  }
}

std::int64_t UnitQueues::padded(std::int64_t elements, std::int64_t block, std::int64_t room) {
  if (block == room || block == 0) return elements;
  // Two counts of elements of a large unit multiply to more than 64 bits hold.
  const std::int64_t rest = elements % block;
  const long double padding = static_cast<long double>(rest) * (room - block) / block;
  return elements / block * room + rest + static_cast<std::int64_t>(padding);
}

std::int64_t UnitQueues::trained_room(const StageMoment& moment) const {
  switch (moment.layer->role) {
    case LayerRole::embedding:
      return embedding_room_;
    case LayerRole::head:
      return head_room_ + waiting_;
    default:
      return whole_unit(moment.layer->parameters, *engine_, *layout_).trained +
             (has_head(moment) ? waiting_ : 0);
  }
}

std::int64_t UnitQueues::gathered_by(const StageMoment& moment) const {
  const LayerParameters& p = moment.layer->parameters;
  const std::int64_t own = whole_unit(p, *engine_, *layout_).gathered;
  if (has_unit_queues(*engine_)) return own;
  std::int64_t largest = 0;
  for (std::int32_t g = 0; g < p.groups; ++g) {
    const TensorGroup& tensor = p.group[static_cast<std::size_t>(g)];
    largest = std::max(largest, tensor.rows * tensor.row_elements);
  }
  const std::int64_t table = moment.layer->role == LayerRole::head ? moment.tied_table : 0;
  return std::min(own, std::max(capacity_.gathers, largest)) + table;
}

std::int64_t UnitQueues::group_output(const StageMoment& moment, bool backward) const {
  return takes_table(moment, backward) ? 0 : std::min(ahead(moment, backward), largest_group_);
}

bool UnitQueues::takes_table(const StageMoment& moment, bool backward) const {
  const std::int64_t left = (backward ? moment.before : moment.after).gathered();
  const std::int64_t table = backward ? moment.outside_before : moment.outside_after;
  return table > 0 && capacity_.gathers - gathered_by(moment) > left - table;
}

std::int64_t UnitQueues::ahead(const StageMoment& moment, bool backward) const {
  if (!has_unit_queues(*engine_)) {
    const std::int64_t own = gathered_by(moment);
    const std::int64_t all = moment.before.gathered() + moment.after.gathered() +
                             whole_unit(moment.layer->parameters, *engine_, *layout_).gathered;
    const std::int64_t left =
        backward ? all - own - moment.after.gathered() : moment.after.gathered();
    if (takes_table(moment, backward)) return left;
    return std::max<std::int64_t>(0, std::min(capacity_.gathers - own, left));
  }
  if (block_.gathered == 0) return 0;
  const std::int64_t wanted = block_.gathered * ceil_div(capacity_.gathers, block_.gathered);
  std::int64_t left = (backward ? moment.before : moment.after).gathered();
  if (engine_->keeps_root_gathered) {
    left -= backward ? moment.outside_before : moment.outside_after;
  }
  return std::min(wanted, padded(left, bare_.gathered(), block_.gathered));
}

std::int64_t UnitQueues::reducing(const StageMoment& moment) const {
  const std::int64_t own = trained_room(moment);
  if (moment.layer->role == LayerRole::head) return own;
  const bool head = has_head(moment);
  const std::int64_t blocks = std::max<std::int64_t>(
      0, padded(moment.after.elements() - (head ? head_ : 0), bare_.elements(), block_.trained));
  const std::int64_t with_head = head ? head_room_ : 0;
  if (blocks == 0) return own + with_head;
  const std::int64_t last = std::min(block_.trained, blocks);
  const std::int64_t rest = blocks - last;
  if (rest + with_head <= capacity_.reductions) return own + last + rest + with_head;
  if (rest <= capacity_.reductions || block_.trained == 0) return own + last + rest;
  return own + last + capacity_.reductions / block_.trained * block_.trained;
}

std::int64_t UnitQueues::reducing_outside(const StageMoment& moment) const {
  if (is_outside(moment.layer->role)) {
    const bool beside_head = has_head(moment) && blocks_ < 2;
    return trained_room(moment) + (beside_head ? head_room_ : 0);
  }
  if (!has_head(moment)) return 0;
  return waiting_ + (moment.after.elements() == head_ ? head_room_ : 0);
}

std::vector<std::int64_t> UnitQueues::fullest_after() const {
  if (block_.trained == 0) return {};
  std::vector<std::int64_t> after;
  // One more than those that the capacity takes beside the head, or alone.
  for (const std::int64_t head : {head_room_, std::int64_t{0}}) {
    if (head > capacity_.reductions) continue;
    const std::int64_t blocks = (capacity_.reductions - head) / block_.trained + 1;
    after.push_back(blocks * bare_.elements() + head_);
  }
  return after;
}

}  // namespace shardwise
