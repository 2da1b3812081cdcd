#include "planner/spec/plan/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "planner/spec/plan/group_runs.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// GPUs that leave an inner domain by the same links of tier `i`.
std::int64_t reach(const ClusterSpec& cluster, std::size_t i) {
  const std::int64_t inner = i == 0 ? 1 : cluster.tiers[i - 1].domain_size;
  return std::max(inner, std::int64_t{cluster.tiers[i].gpus_per_link});
}

/// Ranks of one run inside an aligned block of `block` ranks, 0 when that differs from block to
/// block.
std::int64_t inside(const RankRun& run, std::int64_t block) {
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
  Walk(std::int64_t world, const GroupRuns& group) : group_(group), world_(world) {}

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
    const RankRun& last = group_.runs[static_cast<std::size_t>(group_.count - 1)];
    const std::int64_t end = last.stride * last.size;
    SHARDWISE_CHECK(end > 0, "a run without ranks");
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
  return shape_of(cluster, layout.world(), group_runs(layout, kind));
}

GroupShape shape_of(const ClusterSpec& cluster, std::int64_t world, const GroupRuns& group) {
  SHARDWISE_CHECK(world >= 1, fmt::format("world {}", world));
  SHARDWISE_CHECK(world <= kMostGpus, fmt::format("world {}", world));
  SHARDWISE_CHECK(cluster.tiers.size() <= kMaxTiers, fmt::format("{}", cluster.tiers.size()));
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
    if (spread.most == 0) spread = Walk(world, group).over(domain);
    shape.span[i] = narrow(spread.most);
    shape.least[i] = narrow(spread.least);
    shape.domains[i] = narrow(spread.blocks);

    const std::int64_t block = std::min(reach(cluster, i), world);
    const std::int64_t together = block >= world ? size : inside(group, block);
    shape.concurrent[i] =
        narrow(together > 0 ? block / together : Walk(world, group).over(block).groups);
    shape.tiers = narrow(static_cast<std::int64_t>(i) + 1);
    if (spread.blocks == 1) break;
  }
  return shape;
}

std::vector<std::int64_t> group_ranks(const Layout& layout, GroupKind kind, std::int64_t rank) {
  SHARDWISE_CHECK(rank >= 0, fmt::format("rank {}", rank));
  SHARDWISE_CHECK(rank < layout.world(), fmt::format("rank {}", rank));
  const GroupRuns group = group_runs(layout, kind);
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
