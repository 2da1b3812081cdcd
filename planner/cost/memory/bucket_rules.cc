#include "planner/cost/memory/bucket_rules.h"

#include <numeric>
#include <span>
#include <vector>

#include "planner/cost/memory/state_bytes.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr std::int64_t kHighBandwidthMultiple = 1 << 16;

/// std::lcm, which is slow, for numbers of which one divides the other, as a rule.
std::int64_t least_common_multiple(std::int64_t a, std::int64_t b) {
  if (a % b == 0) return a;
  return b % a == 0 ? b : std::lcm(a, b);
}

/// Adds up buckets, and the pieces of their ranks.
class SumSink {
 public:
  /// \param gaps  tensors may not start where the one before ends
  SumSink(const ShardRanks& ranks, bool gaps) : ranks_{ranks.dense, ranks.routed}, gaps_(gaps) {}

  void enter(bool routed, bool opens, std::int64_t begin, std::int64_t elements, std::int64_t count,
             std::int64_t stride) {
    if (!gaps_) return;
    Group& group = groups_[routed ? 1 : 0];
    const std::int64_t before = opens ? 0 : group.length;
    if (begin > before) group.gaps.push_back({before, begin});
    for (std::int64_t i = 0; i + 1 < count && stride > elements; ++i) {
      group.gaps.push_back({begin + i * stride + elements, begin + (i + 1) * stride});
    }
    group.length = begin + (count - 1) * stride + elements;
  }
  void close(bool routed, std::int64_t elements, std::int64_t length, std::int64_t padded) {
    Group& group = groups_[routed ? 1 : 0];
    const std::int64_t piece = padded / ranks_[routed ? 1 : 0];
    group.padded += padded;
    if (!gaps_) {
      group.fullest += std::min(elements, piece);
      return;
    }
    group.fullest += piece;
    group.missing.resize(static_cast<std::size_t>(ranks_[routed ? 1 : 0]));
    if (padded > length) group.gaps.push_back({length, padded});
    for (const Gap& gap : group.gaps) {
      for (std::int64_t at = gap.begin; at < gap.end;) {
        const std::int64_t rank = at / piece;
        const std::int64_t end = std::min(gap.end, (rank + 1) * piece);
        group.missing[static_cast<std::size_t>(rank)] += end - at;
        at = end;
      }
    }
    group.gaps.clear();
  }

  std::int64_t padded(bool routed) const { return groups_[routed ? 1 : 0].padded; }
  std::int64_t fullest(bool routed) const {
    const Group& group = groups_[routed ? 1 : 0];
    const auto least = std::ranges::min_element(group.missing);
    return group.fullest - (least == group.missing.end() ? 0 : *least);
  }

 private:
  struct Gap {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct Group {
    std::int64_t length = 0;  // of the open bucket
    std::vector<Gap> gaps;    // in it
    std::int64_t padded = 0;
    std::int64_t fullest = 0;           // of a rank without gaps
    std::vector<std::int64_t> missing;  // by rank: elements of gaps in its pieces
  };

  std::array<std::int64_t, 2> ranks_;
  bool gaps_;
  std::array<Group, 2> groups_;
};

}  // namespace

bool chooses_buckets(const EngineProfile& engine) {
  return engine.gradient_buffer == GradientBuffer::contiguous;
}

bool takes_bucket_size(const EngineProfile& engine) {
  return chooses_buckets(engine) || engine.keeps_buckets;
}

std::int64_t bucket_limit(const EngineProfile& engine, const Layout& layout) {
  if (layout.ddp_bucket_size > 0 && takes_bucket_size(engine)) return layout.ddp_bucket_size;
  return std::max(engine.bucket_elements,
                  engine.bucket_elements_per_rank * layout.dp() * layout.cp);
}

bool has_single_buckets(const EngineProfile& engine, const Layout& layout, bool first) {
  return engine.gradient_buffer == GradientBuffer::contiguous &&
         (!layout.overlap_grad_reduce || !first);
}

BucketRules bucket_rules(const EngineProfile& engine, const Layout& layout, bool first) {
  BucketRules rules;
  const std::int64_t limit = bucket_limit(engine, layout);
  if (limit > 0 && !has_single_buckets(engine, layout, first)) rules.limit = limit;
  // Who says a size has it for the first one too. Source:
  // pytorch@v2.15.0:torch/nn/parallel/distributed.py, _BucketCapacityConfig.
  const bool small_first = engine.first_bucket_elements > 0 && layout.ddp_bucket_size == 0;
  rules.first_limit = small_first ? engine.first_bucket_elements : rules.limit;
  rules.cuts = engine.flattens_gradients;
  // One buffer of that size takes them, unless each bucket has its own.
  rules.ends_before =
      !rules.cuts && !engine.keeps_buckets && engine.gradient_buffer == GradientBuffer::copy_in;
  if (layout.zero_stage == 0) return rules;
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  rules.end = {ranks.dense, ranks.routed};
  if (engine.padding == ShardPadding::tensor) rules.each = rules.end;
  if (engine.padding != ShardPadding::bucket) return rules;
  rules.start = engine.start_multiple;
  const bool wide = layout.ddp_pad_buckets_for_high_nccl_busbw && chooses_buckets(engine);
  for (std::int64_t& end : rules.end) {
    end = least_common_multiple(end, engine.pad_multiple);
    if (wide) end = least_common_multiple(end, kHighBandwidthMultiple);
    SHARDWISE_CHECK(end > 0, engine.name);
  }
  return rules;
}

bool pads_whole_buckets(const EngineProfile& engine, const Layout& layout) {
  return engine.padding == ShardPadding::bucket && layout.zero_stage >= 1 &&
         engine.gradient_buffer == GradientBuffer::contiguous;
}

BucketSums bucket_sums(const StageParts& parts, const EngineProfile& engine, const Layout& layout) {
  const ShardRanks ranks = shard_ranks(layout, Placement::shard_inner);
  const BucketRules first = bucket_rules(engine, layout, true);
  const auto divides = [&](std::int64_t multiple) { return parts.tensor_divisor % multiple == 0; };
  if (divides(first.end[0]) && (parts.routed == 0 || divides(first.end[1]))) {
    return {{parts.dense, parts.routed, 0, 0},
            {parts.dense / ranks.dense, parts.routed / ranks.routed, 0, 0}};
  }
  const BucketRules later = bucket_rules(engine, layout, false);
  const bool apart = parts.shares_table && keeps_shared_table_apart(engine, layout);
  SumSink sums(ranks, !divides(first.start));
  for (std::size_t end = parts.in_order.size(); end > 0;) {
    std::size_t begin = end;
    while (begin > 0 && parts.in_order[begin - 1].chunk == parts.in_order[end - 1].chunk) --begin;
    const bool is_first = parts.in_order[begin].layer->role == LayerRole::embedding;
    const auto runs = std::span(parts.in_order).subspan(begin, end - begin);
    const LayerMemory* late = late_head(
        engine, runs,
        [](const StageParts::OrderedRun& run) -> const LayerMemory& { return *run.layer; });
    const ChunkEnds ends = {late, end == parts.in_order.size() ? parts.copied : 0, apart};
    ChunkFiller<SumSink> filler(is_first ? first : later, ends, sums);
    filler.begin();
    for (std::size_t r = runs.size(); r-- > 0;) {
      for (std::int32_t i = 0; i < runs[r].count; ++i) filler.add(*runs[r].layer);
    }
    filler.end();
    end = begin;
  }
  return {{sums.padded(false), sums.padded(true), 0, 0},
          {sums.fullest(false), sums.fullest(true), 0, 0}};
}

}  // namespace shardwise
