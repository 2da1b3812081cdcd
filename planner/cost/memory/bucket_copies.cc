#include "planner/cost/memory/bucket_copies.h"

#include <algorithm>
#include <array>
#include <utility>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/rank_part.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/state_bytes.h"

namespace shardwise {
namespace {

using Reduction = BucketCopies::Reduction;

/// Elements that one copy joins of a bucket [begin, end) of all tensors, of which each rank has a
/// part of `part` elements.
std::int64_t joined_elements(std::int64_t begin, std::int64_t end, std::int64_t part,
                             std::int64_t limit) {
  if (begin / part == (end - 1) / part) return 0;
  if (end - begin <= limit) return end - begin;
  std::int64_t most = 0;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t from = at;
    std::int64_t parts = 0;
    for (; at < end && at - from <= limit; ++parts) at = std::min(end, (at / part + 1) * part);
    if (parts > 1) most = std::max(most, at - from);
  }
  return most;
}

/// Finds the fullest reduction of each layer.
class ReductionSink {
 public:
  /// \param parts  elements of the ranks' parts, dense and routed; 0 where every copy is whole: but
  ///               for one tensor that is a bucket by itself and that the ranks divide
  /// \param kept  of gradients that a rank keeps, from the start on where `early`
  /// \param gathers  weights are gathered, those in use are there
  /// \param each  bytes of an element
  ReductionSink(const Unit& stage, const Unit& parts, const ShardRanks& ranks, std::int64_t limit,
                std::int64_t kept, bool early, bool gathers, std::int64_t each)
      : left_{stage.dense, stage.routed},
        ranks_{ranks.dense, ranks.routed},
        parts_{parts.dense, parts.routed},
        limit_(limit),
        kept_(kept),
        first_(!early),
        gathers_(gathers),
        each_(each) {}

  void begin_layer(std::int64_t ready, const LayerMemory& layer) {
    ready_ = ready;
    layer_ = &layer;
    made_ = 0;
  }
  void enter(bool /*routed*/, bool /*opens*/, std::int64_t /*begin*/, std::int64_t elements,
             std::int64_t count, std::int64_t /*stride*/) {
    reduce(elements);
    made_ += elements * count;
  }
  void close(bool routed, std::int64_t elements, std::int64_t /*length*/, std::int64_t /*padded*/) {
    const std::size_t group = routed ? 1 : 0;
    const std::int64_t end = left_[group];
    left_[group] -= elements;
    const bool alone = elements > limit_;
    Reduction full;
    full.beside = alone ? elements : 0;
    if (parts_[group] > 0) {
      full.joined = joined_elements(left_[group], end, parts_[group], limit_);
    } else if (!alone || elements % ranks_[group] != 0) {
      full.joined = elements;
    }
    full_.push_back(full);
  }
  /// Of what is full, when a gradient of so many elements is there besides.
  void reduce(std::int64_t besides) {
    for (Reduction each : full_) {
      each.ready = ready_;
      each.made = made_;
      each.begins = besides;
      if (gathers_) each.weights = besides > 0 ? besides : left_in_use();
      each.beside += besides;
      const bool copies_more = first_ && each.joined >= kept_;
      if (!copies_more) each.kept = kept_;
      if (first_ && !copies_more) each.joined = 0;
      first_ = false;
      add(each);
    }
    full_.clear();
  }
  std::vector<Reduction> take() { return std::move(reductions_); }

 private:
  std::int64_t left_in_use() const {
    return layer_->role == LayerRole::embedding ? layer_->parameters.dense : 0;
  }
  std::int64_t total(const Reduction& one) const {
    const std::int64_t elements = one.joined + one.beside + one.kept + one.weights;
    return elements * each_ + (one.begins > 0 ? when_made(layer_->leaving, one.made).peak : 0);
  }
  void add(const Reduction& one) {
    if (reductions_.empty() || reductions_.back().ready != one.ready) {
      reductions_.push_back(one);
      return;
    }
    Reduction& last = reductions_.back();
    if (total(one) >= total(last)) last = one;
  }

  std::array<std::int64_t, 2> left_;
  std::array<std::int64_t, 2> ranks_;
  std::array<std::int64_t, 2> parts_;
  std::int64_t limit_;
  std::int64_t ready_ = 0;  // elements of the layers after this one …
  std::int64_t made_ = 0;   // … and of it, with gradients
  std::int64_t kept_;
  bool first_;  // none was before
  bool gathers_;
  std::int64_t each_;
  const LayerMemory* layer_ = nullptr;
  std::vector<Reduction> full_;
  std::vector<Reduction> reductions_;
};

}  // namespace

PassMemory when_made(const LeavingGradients& leaving, std::int64_t made) {
  if (leaving.made.empty()) return {};
  const auto begins = std::ranges::upper_bound(leaving.made, made, {}, &GradientsMade::elements);
  return begins != leaving.made.end() ? begins->pass : leaving.made.back().pass;
}

BucketUse bucket_use(const StageContext& context) {
  const Layout& layout = *context.layout;
  if (context.rules->engine->reduce_buffer_elements == 0) return BucketUse::none;
  if (layout.zero_stage == 0) return BucketUse::all_once;
  if (layout.offload_optimizer) return BucketUse::none;
  const bool overlaps = layout.overlap_grad_reduce && context.num_microbatches == 1;
  return layout.zero_stage == 1 && !overlaps ? BucketUse::at_end : BucketUse::as_made;
}

BucketCopies::BucketCopies(const StageParts& parts, const StageContext& context) {
  const EngineProfile& engine = *context.rules->engine;
  const Layout& layout = *context.layout;
  const BucketRules rules = bucket_rules(engine, layout, true);
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  Unit part;
  std::int64_t kept = 0;
  if (divides_joined_tensors(engine, layout)) {
    part = {joined_part(parts.dense, ranks.dense), joined_part(parts.routed, ranks.routed)};
    if (engine.joins_whole_gradients) kept = rank_part(parts, ranks, true).whole;
  }
  ReductionSink sink({parts.dense, parts.routed}, part, ranks, rules.limit, kept,
                     context.num_microbatches > 1, layout.zero_stage >= 3,
                     context.rules->weight_bytes);
  const ChunkEnds ends = {nullptr, parts.copied, false};
  ChunkFiller<ReductionSink> filler(rules, ends, sink);
  std::int64_t ready = parts.copied;
  for (std::size_t r = parts.in_order.size(); r-- > 0;) {
    const StageParts::OrderedRun& run = parts.in_order[r];
    for (std::int32_t i = 0; i < run.count; ++i) {
      const LayerParameters& p = run.layer->parameters;
      sink.begin_layer(ready, *run.layer);
      if (r + 1 == parts.in_order.size() && i == 0) filler.begin();
      filler.add(*run.layer);
      ready += p.dense + p.routed;
    }
  }
  filler.end();
  sink.reduce(0);
  reductions_ = sink.take();
}

const BucketCopies::Reduction* BucketCopies::at(const StageMoment& moment) const {
  const auto found = std::ranges::lower_bound(reductions_, moment.ready.elements(), {},
                                              &BucketCopies::Reduction::ready);
  return found != reductions_.end() && found->ready == moment.ready.elements() ? &*found : nullptr;
}

bool BucketCopies::any_before(const StageMoment& moment) const {
  return !reductions_.empty() && reductions_.front().ready < moment.ready.elements();
}

std::vector<std::int64_t> BucketCopies::first_ready() const {
  constexpr std::size_t kFirst = 4;
  std::vector<std::int64_t> ready;
  for (std::size_t i = 0; i < std::min(kFirst, reductions_.size()); ++i) {
    ready.push_back(reductions_[i].ready);
  }
  return ready;
}

std::int64_t first_bucket(const StageParts& parts, const EngineProfile& engine,
                          const Layout& layout) {
  const std::int64_t limit = bucket_limit(engine, layout);
  std::int64_t filled = 0;
  for (const StageParts::OrderedRun& run : parts.in_order) {
    for (std::int32_t i = 0; i < run.count; ++i) {
      for (const TensorGroup& t : run.layer->parameters.in_order) {
        const std::int64_t each = t.rows * t.row_elements;
        const std::int64_t fit = each > 0 ? std::min(t.count, (limit - filled) / each) : t.count;
        filled += fit * each;
        if (fit < t.count) return filled;
      }
    }
  }
  return filled;
}

Amount bucket_buffer(const StageBuffers& buffers, const StageContext& context,
                     const StageMoment& moment, bool joined) {
  const bool stays = context.layout->zero_stage == 1 && context.num_microbatches > 1;
  const bool made = moment.ready.elements() > 0 || moment.layer->backward.gradients > 0;
  return buffers.constant || stays || joined || made ? buffers.reduce_buffer : Amount{};
}

Staging bucket_staging(const StageBuffers& buffers, const StageParts& parts,
                       const StageContext& context, const StageMoment& moment, bool joined) {
  const EngineProfile& engine = *context.rules->engine;
  const Layout& layout = *context.layout;
  const std::int64_t each = context.rules->weight_bytes;
  Staging staging;
  staging.buffer = bucket_buffer(buffers, context, moment, joined);
  const bool made_sum = joined && moment.layer->role == LayerRole::embedding;
  if (!made_sum) staging.table = moment.tied_gradients;
  if (!joined) return staging;
  if (buffers.bucket_use == BucketUse::as_made) {
    const BucketCopies::Reduction* reduction = buffers.copies.at(moment);
    if (reduction != nullptr) staging.joined = {reduction->joined, each};
    return staging;
  }
  const std::int64_t all = parts.dense + parts.routed;
  if (buffers.bucket_use == BucketUse::all_once) {
    staging.joined = {std::min(all, bucket_limit(engine, layout)), each};
  } else if (engine.joins_whole_gradients) {
    const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
    const std::int64_t copies =
        rank_part(parts, ranks, false).whole - first_bucket(parts, engine, layout);
    staging.parts = {std::max<std::int64_t>(0, copies), each};
  }
  return staging;
}

}  // namespace shardwise
