#include "planner/cost/memory/rank_part.h"

#include <algorithm>

#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

constexpr std::int64_t kFp64 = 8;

/// Pieces of tensors between two elements of all that the same ranks divide.
class Pieces {
 public:
  Pieces(std::int64_t elements, std::int64_t ranks, bool last) {
    part_.elements = joined_part(elements, ranks);
    begin_ = last ? (ranks - 1) * part_.elements : 0;
    end_ = std::min(begin_ + part_.elements, elements);
    if (begin_ + part_.elements > elements) ++pieces_;
  }
  void skip(std::int64_t elements) { at_ += elements; }
  /// Whether any of the next `elements` is in the part.
  bool meets(std::int64_t elements) const { return at_ < end_ && at_ + elements > begin_; }

  void add(std::int64_t each, std::int64_t count) {
    if (each > 0 && count > 0 && meets(each * count)) {
      const std::int64_t first = std::max<std::int64_t>(0, begin_ - at_) / each;
      const std::int64_t last = std::min(count - 1, (end_ - 1 - at_) / each);
      part_.whole += (last - first + 1) * each;
      pieces_ += last - first + 1;
      const std::int64_t inner = last - first > 1 ? each : 0;
      part_.largest = std::max({part_.largest, piece(first, each), piece(last, each), inner});
    }
    skip(each * count);
  }
  RankPart part() const {
    RankPart part = part_;
    part.joins = pieces_ > 1;
    return part;
  }

 private:
  std::int64_t piece(std::int64_t index, std::int64_t each) const {
    const std::int64_t begin = at_ + index * each;
    return std::min(end_, begin + each) - std::max(begin_, begin);
  }

  RankPart part_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::int64_t at_ = 0;
  std::int64_t pieces_ = 0;
};

}  // namespace

bool divides_joined_tensors(const EngineProfile& engine, const Layout& layout) {
  return engine.padding == ShardPadding::tensor &&
         (layout.zero_stage == 1 || layout.zero_stage == 2);
}

std::int64_t joined_part(std::int64_t elements, std::int64_t ranks) {
  return 2 * ceil_div(elements, 2 * ranks);
}

RankPart rank_part(const StageParts& parts, const ShardRanks& ranks, bool last) {
  Pieces dense(parts.dense, ranks.dense, last);
  Pieces routed(parts.routed, ranks.routed, last);
  for (const StageParts::OrderedRun& run : parts.in_order) {
    const LayerParameters& p = run.layer->parameters;
    for (std::int32_t i = 0; i < run.count; ++i) {
      if (!dense.meets(p.dense) && !routed.meets(p.routed)) {
        dense.skip(p.dense);
        routed.skip(p.routed);
        continue;
      }
      for (const TensorGroup& t : p.in_order) {
        (t.routed ? routed : dense).add(t.rows * t.row_elements, t.count);
      }
    }
  }
  dense.add(parts.copied, 1);
  const RankPart a = dense.part();
  const RankPart b = routed.part();
  return {a.elements + b.elements, a.whole + b.whole, std::max(a.largest, b.largest),
          a.joins || b.joins};
}

OptimizerSteps joined_steps(const StageParts& parts, const ShardRanks& ranks,
                            const MemoryRules& rules, const Amount& moments) {
  OptimizerSteps steps;
  for (const bool last : {false, true}) {
    const RankPart part = rank_part(parts, ranks, last);
    StepTensors norm;
    norm.gradients = {part.whole, rules.weight_bytes};
    StepTensors join = norm;
    norm.squares = {part.largest, kFp64};
    join.joined = {part.joins ? part.elements : 0, rules.weight_bytes};
    join.cast = {part.elements, rules.main_bytes};
    for (const StepTensors& each : {join, norm}) {
      if (each.bytes() > steps.steady.bytes()) steps.steady = each;
    }
    steps.first.cast = join.cast;
  }
  if (steps.steady.bytes() > steps.first.bytes() + moments.bytes()) {
    steps.first = steps.steady;
    steps.first.has_moments = false;
  }
  return steps;
}

}  // namespace shardwise
