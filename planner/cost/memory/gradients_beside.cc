#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost/layer/gradients_join.h"
#include "planner/cost/layer/root_unit.h"
#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/unit_elements.h"
#include "planner/cost/memory/unit_queues.h"
#include "planner/cost/memory/unit_room.h"

namespace shardwise {
namespace {

/// What layers have of their buckets: their tensors, what aligns those behind them, and the end of
/// a bucket that they fill.
class LayerLengths {
 public:
  void begin_layer(std::size_t layer) {
    layer_ = layer;
    lengths_.resize(std::max(lengths_.size(), layer + 1));
  }
  void enter(bool routed, bool opens, std::int64_t begin, std::int64_t /*elements*/,
             std::int64_t /*count*/, std::int64_t /*stride*/) {
    Part& part = open_[routed ? 1 : 0];
    if (!opens && part.layer == layer_) return;
    if (!opens) lengths_[part.layer] += begin - part.begin;
    part = {layer_, begin};
  }
  void close(bool routed, std::int64_t /*elements*/, std::int64_t /*length*/, std::int64_t padded) {
    const Part& part = open_[routed ? 1 : 0];
    lengths_[part.layer] += padded - part.begin;
  }
  std::int64_t of(std::size_t layer) const { return lengths_[layer]; }

 private:
  struct Part {
    std::size_t layer = 0;
    std::int64_t begin = 0;
  };
  std::size_t layer_ = 0;
  std::vector<std::int64_t> lengths_;
  std::array<Part, 2> open_;
};

/// Elements of gradients that join earlier ones, with what pads them: most by layers of the kind.
std::int64_t joining_elements(const StageParts& parts, const LayerMemory& layer,
                              const MemoryRules& rules, const Layout& layout) {
  const EngineProfile& engine = *rules.engine;
  if (fills_root_buckets(engine, layout) && is_outside(layer.role)) {
    std::int64_t elements = layer.parameters.dense;
    for (const RootBucket& bucket : root_buckets(parts, engine, layout)) {
      const bool ends = parts.in_order[bucket.last].layer == &layer;  // what pads it is behind
      if (ends) elements += bucket.padded - bucket.elements;
    }
    return elements;
  }
  if (pads_whole_units(engine, layout)) return whole_unit(layer.parameters, engine, layout).trained;
  if (!pads_whole_buckets(engine, layout)) {
    LayerParameters own = layer.parameters;
    if (layer.role == LayerRole::head) own.dense += parts.copied;
    const TrainedRoom room = trained_room(own, layout, rules.shard_multiple);
    return room.dense + room.routed;
  }
  const BucketRules bucket = bucket_rules(engine, layout, true);
  LayerLengths lengths;
  const ChunkEnds ends;  // our kernels run no multi-token prediction
  ChunkFiller<LayerLengths> filler(bucket, ends, lengths);
  std::vector<const LayerMemory*> layers;
  for (std::size_t r = parts.in_order.size(); r-- > 0;) {
    for (std::int32_t i = 0; i < parts.in_order[r].count; ++i) {
      lengths.begin_layer(layers.size());
      layers.push_back(parts.in_order[r].layer);
      filler.add(*layers.back());
    }
  }
  filler.end();
  std::int64_t most = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] == &layer) most = std::max(most, lengths.of(i));
  }
  return most;
}

}  // namespace

GradientsBeside gradients_beside(const StageParts& parts, const StageContext& context,
                                 const LayerMemory& layer) {
  const MemoryRules& rules = *context.rules;
  const Layout& layout = *context.layout;
  // Of pipelines those that our executor runs.
  const bool runs = layout.pp == 1 || plans_buffers(*rules.engine);
  const bool joins = own_kernels(layer) && runs &&
                     gradients_join(layout, context.num_microbatches) && !adds_to_sums(rules) &&
                     rules.engine->gradient_buffer != GradientBuffer::copy_in;
  if (!joins) return {};
  const std::int64_t each = gradient_element_bytes(rules, layout);
  GradientsBeside beside;
  beside.layer = {joining_elements(parts, layer, rules, layout), each};
  const LayerMemory* embedding = nullptr;
  bool shares = false;
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const LayerMemory& of = *parts.run[static_cast<std::size_t>(r)].layer;
    if (of.role == LayerRole::embedding) embedding = &of;
    shares = shares || has_tied_table(of);
  }
  if (shares && embedding != nullptr && layer.role != LayerRole::embedding) {
    beside.table = {joining_elements(parts, *embedding, rules, layout), each};
  }
  return beside;
}

}  // namespace shardwise
