#include "planner/spec/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "planner/spec/check.h"

namespace shardwise {
namespace {

/// Ranks base + i * stride, 0 <= i < size.
struct Run {
  std::int64_t stride = 1;
  std::int64_t size = 1;
};

/// The ranks of a group, counted from the group's first rank: every sum of one element of each run.
/// Dense axes are laid out over ranks. The expert axes are laid out over the ranks of one pipeline
/// stage, which are not neighbours when pp is not the slowest axis: `inner` of them, then a gap.
struct GroupRuns {
  std::array<Run, 6> runs;  // strides grow
  int count = 0;
  std::int64_t inner = 0;  // ranks below the pp axis; 0 = laid out over ranks
  std::int64_t pp = 1;

  void add(Run run) {
    if (run.size == 1) return;
    if (count > 0) {
      Run& last = runs[static_cast<std::size_t>(count - 1)];
      if (last.stride * last.size == run.stride) {
        last.size *= run.size;
        return;
      }
    }
    runs[static_cast<std::size_t>(count++)] = run;
  }
  std::int64_t size() const {
    std::int64_t product = 1;
    for (int i = 0; i < count; ++i) product *= runs[static_cast<std::size_t>(i)].size;
    return product;
  }
  /// Place of a rank in the layout of the runs, and back; `stage` is the rank's pipeline stage.
  std::int64_t place(std::int64_t rank) const {
    return inner == 0 ? rank : rank / (inner * pp) * inner + rank % inner;
  }
  std::int64_t rank(std::int64_t place, std::int64_t stage) const {
    return inner == 0 ? place : (place / inner * pp + stage) * inner + place % inner;
  }
  std::int64_t stage(std::int64_t rank) const { return inner == 0 ? 0 : rank / inner % pp; }

  /// Place of the first rank of the group that has a rank at `place`.
  std::int64_t first(std::int64_t place) const {
    std::int64_t base = place;
    for (int i = 0; i < count; ++i) {
      const Run& run = runs[static_cast<std::size_t>(i)];
      base -= place / run.stride % run.size * run.stride;
    }
    return base;
  }
  /// Place of element `index` of the group whose first rank is at `base`; grows with `index`.
  std::int64_t element(std::int64_t base, std::int64_t index) const {
    for (int i = 0; i < count; ++i) {
      const Run& run = runs[static_cast<std::size_t>(i)];
      base += index % run.size * run.stride;
      index /= run.size;
    }
    return base;
  }
};

std::int64_t degree(const Layout& layout, Axis axis) {
  switch (axis) {
    case Axis::tp:
      return layout.tp;
    case Axis::cp:
      return layout.cp;
    case Axis::dp_shard:
      return layout.dp_shard;
    case Axis::dp_replicate:
      return layout.dp_replicate;
    case Axis::pp:
      return layout.pp;
    case Axis::ep:
      break;  // lives on the ranks of the other axes
  }
  return 1;
}

bool belongs(GroupKind kind, Axis axis) {
  switch (kind) {
    case GroupKind::tp:
      return axis == Axis::tp;
    case GroupKind::cp:
      return axis == Axis::cp;
    case GroupKind::pp:
      return axis == Axis::pp;
    case GroupKind::dp_shard:
      return axis == Axis::dp_shard;
    case GroupKind::dp_replicate:
      return axis == Axis::dp_replicate;
    case GroupKind::dp_shard_cp:
      return axis == Axis::dp_shard || axis == Axis::cp;
    case GroupKind::world:
      return true;
    case GroupKind::ep:
    case GroupKind::etp:
    case GroupKind::edp:
    case GroupKind::edp_shard:
      break;
  }
  return false;
}

GroupRuns dense_runs(const Layout& layout, GroupKind kind) {
  GroupRuns runs;
  std::int64_t stride = 1;
  for (const Axis axis : layout.order) {
    const std::int64_t size = degree(layout, axis);
    if (belongs(kind, axis)) runs.add({stride, size});
    stride *= size;
  }
  return runs;
}

GroupRuns expert_runs(const Layout& layout, GroupKind kind) {
  GroupRuns runs;
  runs.inner = 1;
  runs.pp = layout.pp;
  for (const Axis axis : layout.order) {
    if (axis == Axis::pp) break;
    runs.inner *= degree(layout, axis);
  }
  std::int64_t stride = 1;
  for (const Axis axis : layout.order) {
    if (axis == Axis::tp) {
      if (kind == GroupKind::etp) runs.add({stride, layout.etp});
      stride *= layout.etp;
    } else if (axis == Axis::ep) {
      if (kind == GroupKind::ep) runs.add({stride, layout.ep});
      stride *= layout.ep;
    } else if (axis == Axis::dp_shard) {
      const std::int64_t edp = layout.edp();
      const std::int64_t instances = std::gcd(edp, std::int64_t{layout.dp_replicate});
      if (kind == GroupKind::edp) runs.add({stride, edp});
      if (kind == GroupKind::edp_shard) runs.add({stride, edp / instances});
      stride *= edp;
    }
  }
  return runs;
}

GroupRuns runs_of(const Layout& layout, GroupKind kind) {
  switch (kind) {
    case GroupKind::ep:
    case GroupKind::etp:
    case GroupKind::edp:
    case GroupKind::edp_shard: {
      GroupRuns runs = expert_runs(layout, kind);
      if (layout.pp == 1) runs.inner = 0;
      return runs;
    }
    default:
      return dense_runs(layout, kind);
  }
}

/// GPUs that leave an inner domain by the same links of tier `i`.
std::int64_t reach(const ClusterSpec& cluster, std::size_t i) {
  const std::int64_t inner = i == 0 ? 1 : cluster.tiers[i - 1].domain_size;
  return std::max(inner, std::int64_t{cluster.tiers[i].gpus_per_link});
}

/// Ranks of one run inside an aligned block of `block` ranks, 0 when that differs from block to
/// block.
std::int64_t inside(const Run& run, std::int64_t block) {
  const std::int64_t end = run.stride * run.size;
  if (block % end == 0) return run.size;
  if (run.stride % block == 0) return 1;
  if (block % run.stride == 0 && end % block == 0) return block / run.stride;
  return 0;
}

/// Ranks of a group inside each block of `block` ranks, 0 when that differs from block to block.
std::int64_t inside(const GroupRuns& group, std::int64_t block) {
  if (group.inner != 0) {
    // Places of one stage inside a block.
    const std::int64_t round = group.inner * group.pp;
    if (block % round == 0) {
      block /= group.pp;
    } else if (block % group.inner == 0 && round % block == 0) {
      block = group.inner;
    } else if (group.inner % block != 0) {
      return 0;
    }
  }
  std::int64_t product = 1;
  for (int i = 0; i < group.count; ++i) {
    product *= inside(group.runs[static_cast<std::size_t>(i)], block);
  }
  return product;
}

/// Gathers the worst of all groups of a kind by walking through them.
class Walk {
 public:
  Walk(const Layout& layout, const GroupRuns& group) : group_(group), world_(layout.world()) {}

  /// Most and fewest ranks of one group in a block of `block` ranks, and most blocks of one group.
  struct Spread {
    std::int64_t most = 0;
    std::int64_t least = 0;
    std::int64_t blocks = 0;
    std::int64_t groups = 0;  // most groups with a rank in the same block
  };
  Spread over(std::int64_t block) const {
    Spread spread;
    spread.least = group_.size();
    const std::int64_t period = repeats_after(block);
    std::vector<std::int32_t> groups(static_cast<std::size_t>(ceil_div(period, block)), 0);
    for (std::int64_t rank = 0; rank < period; ++rank) {
      const std::int64_t base = group_.place(rank);
      if (group_.first(base) == base) visit(base, group_.stage(rank), block, groups, spread);
    }
    spread.groups = *std::max_element(groups.begin(), groups.end());
    return spread;
  }

 private:
  /// Groups lie the same way again after so many ranks.
  std::int64_t repeats_after(std::int64_t block) const {
    if (group_.inner != 0 || group_.count == 0) return world_;
    const Run& last = group_.runs[static_cast<std::size_t>(group_.count - 1)];
    const std::int64_t end = last.stride * last.size;
    const std::int64_t common = end / std::gcd(end, block);
    return block > world_ / common ? world_ : common * block;
  }

  void visit(std::int64_t base, std::int64_t stage, std::int64_t block,
             std::vector<std::int32_t>& groups, Spread& spread) const {
    const std::int64_t size = group_.size();
    std::int64_t here = -1;
    std::int64_t ranks = 0;
    std::int64_t blocks = 0;
    for (std::int64_t i = 0; i <= size; ++i) {
      const std::int64_t at = i == size ? -1 : group_.rank(group_.element(base, i), stage) / block;
      if (at != here && ranks > 0) {
        spread.most = std::max(spread.most, ranks);
        spread.least = std::min(spread.least, ranks);
        ++blocks;
        ++groups[static_cast<std::size_t>(here)];
        ranks = 0;
      }
      here = at;
      ++ranks;
    }
    spread.blocks = std::max(spread.blocks, blocks);
  }

  const GroupRuns& group_;
  std::int64_t world_;
};

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

}  // namespace

GroupShape group_shape(const ClusterSpec& cluster, const Layout& layout, GroupKind kind) {
  const std::int64_t world = layout.world();
  SHARDWISE_CHECK(world >= 1, fmt::format("world {}", world));
  SHARDWISE_CHECK(world <= kMostGpus, fmt::format("world {}", world));
  SHARDWISE_CHECK(cluster.tiers.size() <= kMaxTiers, fmt::format("{}", cluster.tiers.size()));
  const GroupRuns group = runs_of(layout, kind);
  const std::int64_t size = group.size();
  GroupShape shape;
  shape.ranks = narrow(size);
  if (size == 1) return shape;
  for (std::size_t i = 0; i < cluster.tiers.size(); ++i) {
    const std::int64_t domain = cluster.tiers[i].domain_size;
    const bool whole = domain >= world || i + 1 == cluster.tiers.size();
    Walk::Spread spread;
    spread.most = spread.least = whole ? size : inside(group, domain);
    spread.blocks = spread.most == 0 ? 0 : size / spread.most;
    if (spread.most == 0) spread = Walk(layout, group).over(domain);
    shape.span[i] = narrow(spread.most);
    shape.least[i] = narrow(spread.least);
    shape.domains[i] = narrow(spread.blocks);

    const std::int64_t block = std::min(reach(cluster, i), world);
    const std::int64_t together = block >= world ? size : inside(group, block);
    shape.concurrent[i] =
        narrow(together > 0 ? block / together : Walk(layout, group).over(block).groups);
    shape.tiers = narrow(static_cast<std::int64_t>(i) + 1);
    if (spread.blocks == 1) break;
  }
  return shape;
}

GroupShape even_group(const ClusterSpec& cluster, std::initializer_list<std::int32_t> spans) {
  SHARDWISE_CHECK(spans.size() > 0, "no spans");
  SHARDWISE_CHECK(spans.size() <= cluster.tiers.size(), fmt::format("{} spans", spans.size()));
  GroupShape shape;
  shape.ranks = *(spans.end() - 1);
  if (shape.ranks == 1) return shape;
  std::size_t i = 0;
  std::int32_t inner = 1;
  for (const std::int32_t span : spans) {
    shape.span[i] = shape.least[i] = span;
    shape.domains[i] = narrow(ceil_div(shape.ranks, span));
    const std::int64_t block = reach(cluster, i);
    const std::int64_t together = i > 0 && block == cluster.tiers[i - 1].domain_size
                                      ? inner
                                      : std::min<std::int64_t>(span, block);
    shape.concurrent[i] = narrow(std::max<std::int64_t>(1, block / together));
    inner = span;
    ++i;
    if (span == shape.ranks) break;
  }
  shape.tiers = narrow(static_cast<std::int64_t>(i));
  return shape;
}

std::vector<std::int64_t> group_ranks(const Layout& layout, GroupKind kind, std::int64_t rank) {
  SHARDWISE_CHECK(rank >= 0, fmt::format("rank {}", rank));
  SHARDWISE_CHECK(rank < layout.world(), fmt::format("rank {}", rank));
  const GroupRuns group = runs_of(layout, kind);
  const std::int64_t base = group.first(group.place(rank));
  std::vector<std::int64_t> ranks;
  const std::int64_t size = group.size();
  ranks.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    ranks.push_back(group.rank(group.element(base, i), group.stage(rank)));
  }
  return ranks;
}

}  // namespace shardwise
