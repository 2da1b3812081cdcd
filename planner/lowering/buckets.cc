#include "planner/lowering/buckets.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "planner/lowering/unit_work.h"
#include "planner/spec/units.h"

namespace shardwise {
namespace {

/// Fills the buckets of one chunk.
class BucketFiller {
 public:
  BucketFiller(const LoweringContext& context, std::int16_t chunk, std::int64_t limit,
               std::vector<Bucket>& buckets)
      : context_(context), chunk_(chunk), limit_(limit), buckets_(buckets) {}

  void tensor(bool routed, std::int64_t elements, std::size_t slot) {
    const EngineProfile& engine = context_.engine();
    if (engine.flattens_gradients) {  // cut wherever the limit falls
      while (elements > room(routed)) {
        const std::int64_t part = room(routed);
        add(routed, part, slot);
        elements -= part;
      }
    } else if (engine.gradient_buffer == GradientBuffer::copy_in && elements > room(routed)) {
      close(routed);
    }
    add(routed, elements, slot);
  }
  void close(bool routed) {
    std::optional<Bucket>& open = open_[routed ? 1 : 0];
    if (!open) return;
    const std::int64_t ranks = ranks_of(routed);
    const bool bucket = context_.engine().padding == ShardPadding::bucket;
    const std::int64_t step = bucket ? std::lcm(ranks, context_.engine().pad_multiple) : ranks;
    open->padded = round_up(open->padded, step);
    buckets_.push_back(*open);
    open.reset();
  }

 private:
  /// What the open bucket, or else a new one, takes before it is full.
  std::int64_t room(bool routed) const {
    const std::optional<Bucket>& open = open_[routed ? 1 : 0];
    return limit_ - (open ? open->elements : 0);
  }
  void add(bool routed, std::int64_t elements, std::size_t slot) {
    std::optional<Bucket>& open = open_[routed ? 1 : 0];
    if (!open) open = Bucket{chunk_, routed, 0, 0, slot, slot};
    open->elements += elements;
    const std::int64_t ranks = ranks_of(routed);
    open->padded +=
        context_.engine().padding == ShardPadding::tensor ? round_up(elements, ranks) : elements;
    open->first = slot;
    if (open->elements >= limit_) close(routed);
  }
  std::int64_t ranks_of(bool routed) const {
    return routed ? context_.shards.routed : context_.shards.dense;
  }

  const LoweringContext& context_;
  std::int16_t chunk_;
  std::int64_t limit_;
  std::vector<Bucket>& buckets_;
  std::array<std::optional<Bucket>, 2> open_;
};

/// A layer's trained tensors on this rank, last first.
void fill(const LoweringContext& c, const StageLayer& layer, std::size_t slot,
          BucketFiller& filler) {
  const ModelSpec& model = c.plan->model;
  if (layer.copies_table) {
    // The token table of another stage: registered after the head that uses it.
    filler.tensor(false, table_elements(c.memories), slot);
  }
  const std::vector<ParameterSpec>& parameters =
      model.kinds[static_cast<std::size_t>(layer.kind)].parameters;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const ParameterSpec& p = parameters[i];
    if (!p.trainable || c.job().frozen_base) continue;
    const LocalTensor tensor = local_tensor(p, c.engine(), c.layout());
    for (std::int64_t k = 0; k < tensor.count; ++k) {
      filler.tensor(p.routed_expert, tensor.rows * tensor.row_elements, slot);
    }
  }
}

void add_units(const LoweringContext& c, const ModelChunk& chunk, std::int16_t number,
               std::size_t first_slot, std::vector<Bucket>& buckets) {
  for (std::size_t i = chunk.layers.size(); i-- > 0;) {
    const UnitElements sizes = unit_sizes(c, chunk.layers[i]);
    const std::size_t slot = first_slot + i;
    if (sizes.dense > 0) {
      buckets.push_back({number, false, sizes.dense, sizes.padded_dense, slot, slot});
    }
    if (sizes.routed > 0) {
      buckets.push_back({number, true, sizes.routed, sizes.padded_routed, slot, slot});
    }
  }
}

}  // namespace

std::vector<Bucket> buckets_of(const LoweringContext& c, std::int32_t stage) {
  const EngineProfile& engine = c.engine();
  const Layout& layout = c.layout();
  const bool by_unit =
      engine.bucket_elements == 0 || engine.gradient_buffer == GradientBuffer::unit_queue;
  const std::int64_t limit =
      std::max(engine.bucket_elements, engine.bucket_elements_per_rank * layout.dp() * layout.cp);
  std::vector<Bucket> buckets;
  const std::vector<ModelChunk>& chunks = c.stage_chunks[static_cast<std::size_t>(stage)];
  std::size_t slot = 0;
  for (std::size_t n = 0; n < chunks.size(); ++n) {
    const ModelChunk& chunk = chunks[n];
    const auto number = static_cast<std::int16_t>(n);
    if (by_unit) {
      add_units(c, chunk, number, slot, buckets);
    } else {
      const bool single = engine.gradient_buffer == GradientBuffer::contiguous &&
                          (!layout.overlap_grad_reduce || stage > 0 || n > 0);
      BucketFiller filler(c, number, single ? std::numeric_limits<std::int64_t>::max() : limit,
                          buckets);
      for (std::size_t i = chunk.layers.size(); i-- > 0;) {
        fill(c, chunk.layers[i], slot + i, filler);
      }
      filler.close(false);
      filler.close(true);
    }
    slot += chunk.layers.size();
  }
  return buckets;
}

}  // namespace shardwise
