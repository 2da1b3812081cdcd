#include "planner/cost/memory/bitsandbytes_moments.h"

#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

constexpr std::int64_t kLeastNarrow = 4096;    // elements of a tensor in 8 bits: min_8bit_size
constexpr std::int64_t kLeastPaged = 100'000;  // elements of a tensor in managed memory

}  // namespace

BlockMoments bitsandbytes_moments(const StageParts& parts, const MemoryRules& rules,
                                  const ShardRanks& ranks) {
  BlockMoments sum;
  bool has_narrow = false;
  const auto add = [&](std::int64_t elements, std::int64_t tensors, bool embedding) {
    const bool narrow = is_blockwise(rules.adamw) && elements >= kLeastNarrow && !embedding;
    if (narrow) sum.scales += ceil_div(elements, kMomentBlock) * tensors;
    has_narrow = has_narrow || narrow;
    if (is_paged(rules.adamw) && elements >= kLeastPaged) {
      sum.paged += elements * tensors * (narrow ? kNarrowMomentBytes : rules.moment_bytes);
    } else {
      (narrow ? sum.narrow : sum.wide) += elements * tensors;
    }
  };
  add(ceil_div(parts.copied, ranks.dense), 1, true);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    const LayerParameters& p = run.layer->parameters;
    for (std::int32_t g = 0; g < p.groups; ++g) {
      const TensorGroup& t = p.group[static_cast<std::size_t>(g)];
      const std::int64_t part =
          ceil_div(t.rows * t.row_elements, t.routed ? ranks.routed : ranks.dense);
      add(part, t.count * run.count, run.layer->role == LayerRole::embedding);
    }
  }
  if (has_narrow) sum.scales += kMomentBlock;  // as many values as elements of a block
  return sum;
}

BlockMoments torchao_moments(const StageParts& parts, const MemoryRules& rules,
                             const ShardRanks& ranks) {
  BlockMoments sum;
  const auto add = [&](std::int64_t elements, std::int64_t tensors) {
    const bool narrow = elements >= kLeastNarrow && elements % kMomentBlock == 0;
    (narrow ? sum.narrow : sum.wide) += elements * tensors;
    // As many values as elements of a block.
    if (narrow) sum.scales += (elements / kMomentBlock + kMomentBlock) * tensors;
  };
  if (parts.copied > 0) add(ceil_div(parts.copied, ranks.dense), 1);
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    const LayerParameters& p = run.layer->parameters;
    for (std::int32_t g = 0; g < p.groups; ++g) {
      const TensorGroup& t = p.group[static_cast<std::size_t>(g)];
      const std::int64_t ways = t.routed ? ranks.routed : ranks.dense;
      const std::int64_t part = rules.engine->padding == ShardPadding::row
                                    ? ceil_div(t.rows, ways) * t.row_elements
                                    : ceil_div(t.rows * t.row_elements, ways);
      add(part, t.count * run.count);
    }
  }
  return sum;
}

}  // namespace shardwise
