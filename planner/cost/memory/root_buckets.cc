#include "planner/cost/memory/root_buckets.h"

#include <algorithm>
#include <utility>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/unit_elements.h"
#include "planner/cost/memory/unit_queues.h"
#include "planner/cost/memory/unit_room.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

constexpr std::int64_t kLongestChunk = std::int64_t{1} << 42;  // more than any GPU holds

/// Fills buckets with tensors, in the order of registration.
class RootFiller {
 public:
  RootFiller(std::int64_t limit, std::int64_t ranks) : limit_(limit), ranks_(ranks) {}

  void add(std::size_t layer, const TensorGroup& tensors, bool alone) {
    for (std::int64_t i = 0; i < tensors.count; ++i) {
      if (alone) close();
      if (open_.elements == 0) open_.first = layer;
      open_.last = layer;
      const std::int64_t elements = tensors.rows * tensors.row_elements;
      open_.elements += elements;
      tensors_.push_back({elements, tensors.row_elements, 1});
      if (alone || open_.elements >= limit_) close();
    }
  }
  void close() {
    if (open_.elements == 0) return;
    open_.chunks = tensor_chunks(std::move(tensors_), kLongestChunk / ranks_);
    open_.padded = open_.chunks.padded(ranks_);
    buckets_.push_back(std::move(open_));
    open_ = {};
    tensors_.clear();
  }
  std::vector<RootBucket> take() {
    close();
    return std::move(buckets_);
  }

 private:
  std::int64_t limit_;
  std::int64_t ranks_;
  RootBucket open_;
  std::vector<ChunkedTensor> tensors_;  // of the open bucket
  std::vector<RootBucket> buckets_;
};

/// Gaps in buckets that tensors fill whatever layer they are of, in the order of registration.
class GapSum {
 public:
  explicit GapSum(std::int64_t limit) : limit_(limit) {}

  /// Tensors alike are placed a bucket at a time, however many there are: hundreds of experts have
  /// three a layer.
  void add(const ChunkedTensor& tensors) {
    if (tensors.elements == 0) return;
    std::int64_t left = tensors.count;
    const auto fill = [&] {
      const std::int64_t lacks =
          ceil_div(std::max(limit_ - elements_, std::int64_t{1}), tensors.elements);
      const std::int64_t count = std::min(left, lacks);
      open_.push_back({tensors.elements, tensors.row, count});
      elements_ += tensors.elements * count;
      left -= count;
      if (elements_ >= limit_) close();
      return count;
    };
    if (!open_.empty()) fill();
    if (left == 0 || !open_.empty()) return;
    const std::int64_t before = gaps_;
    const std::int64_t each = fill();
    if (!open_.empty()) return;
    gaps_ += (gaps_ - before) * (left / each);  // as many whole buckets of them
    left %= each;
    if (left > 0) fill();
  }
  void add(std::span<const ChunkedTensor> layer, std::int32_t layers) {
    for (std::int32_t i = 0; i < layers; ++i) {
      const bool begins = open_.empty();
      const std::int64_t before = gaps_;
      for (const ChunkedTensor& each : layer) add(each);
      if (!begins || !open_.empty()) continue;
      gaps_ += (gaps_ - before) * (layers - i - 1);  // the others fill the same buckets
      return;
    }
  }
  void close() {
    gaps_ += tensor_chunks(std::move(open_), kLongestChunk).length - elements_;
    open_.clear();
    elements_ = 0;
  }
  std::int64_t gaps() const { return gaps_; }

 private:
  std::int64_t limit_;
  std::int64_t gaps_ = 0;
  std::int64_t elements_ = 0;  // of the open bucket
  std::vector<ChunkedTensor> open_;
};

}  // namespace

std::int64_t gaps_of_whole(const StageParts& parts, const EngineProfile& engine,
                           const Layout& layout) {
  if (!has_unit_queues(engine) || layout.zero_stage > 0) return 0;
  GapSum dense(bucket_limit(engine, layout));
  GapSum routed(bucket_limit(engine, layout));
  for (std::size_t r = 0; r < parts.in_order.size(); ++r) {
    const StageParts::OrderedRun& run = parts.in_order[r];
    const LayerParameters& p = run.layer->parameters;
    dense.add(p.chunks.tensors, run.count);
    routed.add(p.routed_chunks.tensors, run.count);
    const bool ends = r + 1 == parts.in_order.size();
    if (ends && parts.copied > 0) dense.add({parts.copied, parts.copied_row, 1});
    if (!ends && parts.in_order[r + 1].chunk == run.chunk) continue;
    dense.close();
    routed.close();
  }
  return dense.gaps() + routed.gaps();
}

bool fills_root_buckets(const EngineProfile& engine, const Layout& layout) {
  return has_unit_queues(engine) && pads_whole_units(engine, layout);
}

std::vector<RootBucket> root_buckets(std::span<const RootLayer> layers, bool table_apart,
                                     const EngineProfile& engine, const Layout& layout) {
  RootFiller filler(bucket_limit(engine, layout), finest_ranks(layout).dense);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerMemory& layer = *layers[i].memory;
    for (const TensorGroup& tensors : layer.parameters.in_order) {
      if (!is_outside(layer.role)) continue;
      const std::int64_t elements = tensors.rows * tensors.row_elements;
      filler.add(i, tensors, table_apart && is_token_table(layer, elements));
    }
    if (layers[i].copied.rows > 0) filler.add(i, layers[i].copied, table_apart);
  }
  return filler.take();
}

std::vector<RootBucket> root_buckets(const StageParts& parts, const EngineProfile& engine,
                                     const Layout& layout) {
  std::vector<RootBucket> all;
  std::vector<RootLayer> layers;
  std::vector<std::size_t> places;
  const TensorGroup table = {parts.copied / parts.copied_row, parts.copied_row, 1, false};
  for (std::size_t r = 0; r < parts.in_order.size(); ++r) {
    const StageParts::OrderedRun& run = parts.in_order[r];
    const bool ends = r + 1 == parts.in_order.size();
    const TensorGroup copied = ends ? table : TensorGroup{};
    if (is_outside(run.layer->role) || copied.rows > 0) {
      layers.push_back({run.layer, copied});
      places.push_back(r);
    }
    if (!ends && parts.in_order[r + 1].chunk == run.chunk) continue;
    for (RootBucket bucket : root_buckets(layers, parts.shares_table, engine, layout)) {
      bucket.first = places[bucket.first];
      bucket.last = places[bucket.last];
      all.push_back(bucket);
    }
    layers.clear();
    places.clear();
  }
  return all;
}

std::int64_t OwnRoots::padded() const {
  std::int64_t sum = 0;
  for (const RootBucket& bucket : buckets) sum += bucket.padded;
  return sum;
}

OwnRoots own_roots(const LayerMemory& layer, const RootPlace& place, const EngineProfile& engine,
                   const Layout& layout) {
  OwnRoots own;
  const bool any = is_outside(layer.role) || place.copied.rows > 0;
  if (!any || !fills_root_buckets(engine, layout)) return own;
  std::vector<RootLayer> layers;
  if (place.before != nullptr) layers.push_back({place.before, {}});
  const std::size_t at = layers.size();
  layers.push_back({&layer, place.copied});
  if (place.after != nullptr) layers.push_back({place.after, {}});
  for (const RootBucket& bucket : root_buckets(layers, place.table_apart, engine, layout)) {
    if (bucket.first == at) own.buckets.push_back(bucket);
    own.begins_others = own.begins_others || (bucket.last == at && bucket.first != at);
  }
  return own;
}

}  // namespace shardwise
