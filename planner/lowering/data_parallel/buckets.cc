#include "planner/lowering/data_parallel/buckets.h"

#include <algorithm>
#include <array>

#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/lowering/data_parallel/unit_work.h"

namespace shardwise {
namespace {

/// The buckets of one chunk.
class BucketList {
 public:
  BucketList(std::int16_t chunk, std::vector<Bucket>& buckets) : chunk_(chunk), buckets_(buckets) {}

  void begin_layer(std::size_t slot) { slot_ = slot; }

  void enter(bool routed, bool opens, std::int64_t /*begin*/, std::int64_t /*elements*/,
             std::int64_t /*count*/, std::int64_t /*stride*/) {
    Bucket& open = open_[routed ? 1 : 0];
    if (opens) open = Bucket{chunk_, routed, false, 0, 0, slot_, slot_};
    open.first = std::min(open.first, slot_);
    open.last = std::max(open.last, slot_);
  }
  void close(bool routed, std::int64_t elements, std::int64_t /*length*/, std::int64_t padded) {
    Bucket& open = open_[routed ? 1 : 0];
    open.elements = elements;
    open.padded = padded;
    buckets_.push_back(open);
  }

 private:
  std::int16_t chunk_;
  std::vector<Bucket>& buckets_;
  std::size_t slot_ = 0;
  std::array<Bucket, 2> open_;
};

/// Those of a chunk, by place in it.
std::vector<RootBucket> chunk_roots(const LoweringContext& c, std::int32_t stage,
                                    const ModelChunk& chunk) {
  if (!fills_root_buckets(c.engine(), c.layout())) return {};
  std::vector<RootLayer> layers;
  for (const StageLayer& layer : chunk.layers) {
    layers.push_back({&c.memories[static_cast<std::size_t>(layer.kind)],
                      layer.copies_table ? token_table(c.memories) : TensorGroup{}});
  }
  return root_buckets(layers, c.stages[static_cast<std::size_t>(stage)].shares_table, c.engine(),
                      c.layout());
}

void add_units(const LoweringContext& c, const ModelChunk& chunk,
               const std::vector<RootBucket>& roots, std::int16_t number, std::size_t first_slot,
               std::vector<Bucket>& buckets) {
  for (std::size_t i = chunk.layers.size(); i-- > 0;) {
    const UnitElements sizes = unit_sizes(c, chunk.layers[i]);
    const std::size_t slot = first_slot + i;
    for (std::size_t r = roots.size(); r-- > 0;) {
      const RootBucket& root = roots[r];
      if (root.first != i) continue;
      buckets.push_back(
          {number, false, true, root.elements, root.padded, slot, first_slot + root.last});
    }
    if (sizes.dense > 0) {
      buckets.push_back({number, false, false, sizes.dense, sizes.padded_dense, slot, slot});
    }
    if (sizes.routed > 0) {
      buckets.push_back({number, true, false, sizes.routed, sizes.padded_routed, slot, slot});
    }
  }
}

template <class MemoryOf>
std::size_t place_of_head(const ModelChunk& chunk, MemoryOf memory_of) {
  const auto head = std::ranges::find_if(chunk.layers, [&](const StageLayer& layer) {
    return memory_of(layer).role == LayerRole::head;
  });
  return static_cast<std::size_t>(head - chunk.layers.begin());
}

}  // namespace

std::vector<Bucket> buckets_of(const LoweringContext& c, std::int32_t stage) {
  const EngineProfile& engine = c.engine();
  const bool by_unit =
      engine.bucket_elements == 0 || engine.gradient_buffer == GradientBuffer::unit_queue;
  const bool apart = keeps_shared_table_apart(engine, c.layout()) &&
                     c.stages[static_cast<std::size_t>(stage)].shares_table;
  std::vector<Bucket> buckets;
  const std::vector<ModelChunk>& chunks = c.stage_chunks[static_cast<std::size_t>(stage)];
  std::size_t slot = 0;
  for (std::size_t n = 0; n < chunks.size(); ++n) {
    const ModelChunk& chunk = chunks[n];
    const auto number = static_cast<std::int16_t>(n);
    if (by_unit) {
      add_units(c, chunk, chunk_roots(c, stage, chunk), number, slot, buckets);
    } else {
      BucketRules rules = bucket_rules(engine, c.layout(), stage == 0 && n == 0);
      // The order in which gradients are ready is not known yet.
      const bool learns = engine.keeps_buckets && c.first_step;
      if (learns) rules.first_limit = rules.limit = BucketRules::kUnlimited;
      BucketList list(number, buckets);
      const auto memory_of = [&](const StageLayer& layer) -> const LayerMemory& {
        return c.memories[static_cast<std::size_t>(layer.kind)];
      };
      const LayerMemory* late = late_head(engine, chunk.layers, memory_of);
      const std::size_t last = slot + chunk.layers.size() - 1;
      const bool copies = chunk.layers.back().copies_table;
      const ChunkEnds ends = {late, copies ? table_elements(c.memories) : 0, apart};
      ChunkFiller<BucketList> filler(rules, ends, list);
      list.begin_layer(late == nullptr ? last : slot + place_of_head(chunk, memory_of));
      filler.begin();
      for (std::size_t i = chunk.layers.size(); i-- > 0;) {
        list.begin_layer(slot + i);
        filler.add(memory_of(chunk.layers[i]));
      }
      list.begin_layer(last);
      filler.end();
    }
    slot += chunk.layers.size();
  }
  return buckets;
}

}  // namespace shardwise
