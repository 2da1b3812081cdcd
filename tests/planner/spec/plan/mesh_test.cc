#include "planner/spec/plan/mesh.h"

#include "tests/support/even_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace shardwise {
namespace {

using testing::ElementsAre;

constexpr GroupKind kAllKinds[] = {
    GroupKind::tp,  GroupKind::cp,        GroupKind::ep,           GroupKind::etp,
    GroupKind::pp,  GroupKind::dp_shard,  GroupKind::dp_replicate, GroupKind::dp_shard_cp,
    GroupKind::edp, GroupKind::edp_shard, GroupKind::world};

ClusterSpec tiers_of(const std::vector<std::int64_t>& domains, int gpus_per_link = 1) {
  ClusterSpec cluster;
  for (const std::int64_t domain : domains) {
    LinkTier tier;
    tier.domain_size = domain;
    tier.bandwidth = 50_GBps;
    tier.gpus_per_link = gpus_per_link;
    cluster.tiers.push_back(tier);
  }
  return cluster;
}

/// Coordinates of every rank, counted up one rank at a time: odometers, not divisions.
struct Coordinates {
  std::map<Axis, std::int64_t> dense;
  std::int64_t etp = 0, ep = 0, edp = 0;
};

std::vector<Coordinates> count_up(const Layout& layout) {
  const auto limit = [&](Axis axis) -> std::int64_t {
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
        break;
    }
    return 1;
  };
  std::vector<Coordinates> all;
  Coordinates now;
  for (const Axis axis : layout.order) now.dense[axis] = 0;
  // Each stage has an odometer of its own for the experts.
  std::vector<Coordinates> expert(static_cast<std::size_t>(layout.pp));
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    Coordinates& fold = expert[static_cast<std::size_t>(now.dense[Axis::pp])];
    now.etp = fold.etp;
    now.ep = fold.ep;
    now.edp = fold.edp;
    all.push_back(now);
    for (const Axis axis : layout.order) {
      if (++now.dense[axis] < limit(axis)) break;
      now.dense[axis] = 0;
    }
    for (const Axis axis : layout.order) {
      if (axis == Axis::tp) {
        if (++fold.etp < layout.etp) break;
        fold.etp = 0;
      } else if (axis == Axis::ep) {
        if (++fold.ep < layout.ep) break;
        fold.ep = 0;
      } else if (axis == Axis::dp_shard) {
        if (++fold.edp < layout.edp()) break;
        fold.edp = 0;
      }
    }
  }
  return all;
}

/// What all ranks of one group have in common.
std::vector<std::int64_t> group_of(const Layout& layout, GroupKind kind, const Coordinates& at) {
  const auto without = [&](const std::set<Axis>& free) {
    std::vector<std::int64_t> rest;
    for (const auto& [axis, value] : at.dense) rest.push_back(free.contains(axis) ? 0 : value);
    return rest;
  };
  const std::int64_t stage = at.dense.at(Axis::pp);
  const std::int64_t instances = std::gcd(layout.edp(), std::int64_t{layout.dp_replicate});
  switch (kind) {
    case GroupKind::tp:
      return without({Axis::tp});
    case GroupKind::cp:
      return without({Axis::cp});
    case GroupKind::pp:
      return without({Axis::pp});
    case GroupKind::dp_shard:
      return without({Axis::dp_shard});
    case GroupKind::dp_replicate:
      return without({Axis::dp_replicate});
    case GroupKind::dp_shard_cp:
      return without({Axis::dp_shard, Axis::cp});
    case GroupKind::dp_cp:
      return without({Axis::dp_shard, Axis::dp_replicate, Axis::cp});
    case GroupKind::stage:
      return {stage};
    case GroupKind::ep:
      return {stage, at.etp, at.edp};
    case GroupKind::etp:
      return {stage, at.ep, at.edp};
    case GroupKind::edp:
      return {stage, at.etp, at.ep};
    case GroupKind::edp_shard:
      return {stage, at.etp, at.ep, at.edp / (layout.edp() / instances)};
    case GroupKind::reshard:
    case GroupKind::world:
      break;
  }
  return {};
}

using Groups = std::map<std::vector<std::int64_t>, std::vector<std::int64_t>>;

Groups all_groups(const Layout& layout, GroupKind kind) {
  Groups groups;
  const std::vector<Coordinates> all = count_up(layout);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    groups[group_of(layout, kind, all[rank])].push_back(static_cast<std::int64_t>(rank));
  }
  return groups;
}

/// The shape by counting every rank of every group.
GroupShape counted_shape(const ClusterSpec& cluster, const Groups& groups) {
  GroupShape shape;
  shape.ranks = static_cast<std::int32_t>(groups.begin()->second.size());
  if (shape.ranks == 1) return shape;
  std::int64_t inner = 1;
  for (std::size_t i = 0; i < cluster.tiers.size(); ++i) {
    const LinkTier& tier = cluster.tiers[i];
    const std::int64_t block = std::max<std::int64_t>(inner, tier.gpus_per_link);
    std::map<std::int64_t, std::set<const void*>> together;
    shape.least[i] = shape.ranks;
    for (const auto& group : groups) {
      std::map<std::int64_t, std::int32_t> domains;
      for (const std::int64_t rank : group.second) {
        ++domains[rank / tier.domain_size];
        together[rank / block].insert(&group);
      }
      shape.domains[i] = std::max(shape.domains[i], static_cast<std::int32_t>(domains.size()));
      for (const auto& [domain, ranks] : domains) {
        shape.span[i] = std::max(shape.span[i], ranks);
        shape.least[i] = std::min(shape.least[i], ranks);
      }
    }
    for (const auto& [place, here] : together) {
      shape.concurrent[i] = std::max(shape.concurrent[i], static_cast<std::int32_t>(here.size()));
    }
    shape.tiers = static_cast<std::int32_t>(i) + 1;
    if (shape.domains[i] == 1) break;
    inner = tier.domain_size;
  }
  return shape;
}

Layout random_layout(std::mt19937& random) {
  const std::int32_t sizes[] = {1, 1, 2, 2, 3, 4, 5, 6, 8};
  const auto pick = [&] { return sizes[random() % std::size(sizes)]; };
  Layout layout;
  do {
    layout.tp = pick();
    layout.cp = pick();
    layout.pp = pick();
    layout.dp_shard = pick();
    layout.dp_replicate = pick();
  } while (layout.world() > 2000);
  const std::int64_t stage = std::int64_t{layout.tp} * layout.cp * layout.dp();
  do {
    layout.ep = pick() * pick();
    layout.etp = pick();
  } while (stage % (std::int64_t{layout.ep} * layout.etp) != 0);
  std::shuffle(layout.order.begin(), layout.order.end(), random);
  return layout;
}

ClusterSpec random_cluster(std::mt19937& random) {
  const std::int64_t inner[] = {1, 2, 3, 4, 8, 8, 8, 72};
  const std::int64_t first = inner[random() % std::size(inner)];
  const int share = static_cast<int>(1 + random() % 4);
  switch (random() % 3) {
    case 0:
      return tiers_of({first, kMostGpus}, share);
    case 1:
      return tiers_of({first, first * static_cast<std::int64_t>(2 + random() % 8), kMostGpus},
                      share);
    default:
      return tiers_of({first, first * 2, first * 10, kMostGpus}, share);
  }
}

TEST(GroupRanks, AreThoseThatDifferOnlyAlongTheAxes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Layout layout = random_layout(random);
    for (const GroupKind kind : kAllKinds) {
      for (const auto& [key, ranks] : all_groups(layout, kind)) {
        ASSERT_EQ(group_ranks(layout, kind, ranks.front()), ranks) << static_cast<int>(kind);
        ASSERT_EQ(group_ranks(layout, kind, ranks.back()), ranks) << static_cast<int>(kind);
      }
    }
  }
}

// Each rank of up to thousands is counted: a fourth of the layouts unless SHARDWISE_WHOLE_DRAWS is
// set.
TEST(GroupShape, IsWhatCountingRanksGives) {
  const unsigned layouts = std::getenv("SHARDWISE_WHOLE_DRAWS") != nullptr ? 400 : 100;
  for (unsigned seed = 0; seed < layouts; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Layout layout = random_layout(random);
    const ClusterSpec cluster = random_cluster(random);
    for (const GroupKind kind : kAllKinds) {
      const GroupShape expected = counted_shape(cluster, all_groups(layout, kind));
      const GroupShape shape = group_shape(cluster, layout, kind);
      ASSERT_EQ(shape.ranks, expected.ranks) << static_cast<int>(kind);
      ASSERT_EQ(shape.span, expected.span) << static_cast<int>(kind);
      ASSERT_EQ(shape.least, expected.least) << static_cast<int>(kind);
      ASSERT_EQ(shape.domains, expected.domains) << static_cast<int>(kind);
      ASSERT_EQ(shape.concurrent, expected.concurrent) << static_cast<int>(kind);
      ASSERT_EQ(shape.tiers, expected.tiers) << static_cast<int>(kind);
    }
  }
}

TEST(GroupShape, PutsTensorParallelInsideANodeAndDataParallelAcross) {
  const ClusterSpec cluster = tiers_of({8, kMostGpus});
  Layout layout;
  layout.tp = 4;
  layout.dp_shard = 8;
  const GroupShape tp = group_shape(cluster, layout, GroupKind::tp);
  EXPECT_EQ(tp.tiers, 1);
  EXPECT_EQ(tp.span[0], 4);
  const GroupShape dp = group_shape(cluster, layout, GroupKind::dp_shard);
  EXPECT_EQ(dp.tiers, 2);
  EXPECT_THAT(dp.span, ElementsAre(2, 8, 0, 0));
  EXPECT_THAT(dp.concurrent, ElementsAre(1, 4, 0, 0));
}

TEST(GroupShape, ShowsTheWorstGroupWhenGroupsStraddleNodes) {
  const ClusterSpec cluster = tiers_of({8, kMostGpus});
  Layout layout;
  layout.tp = 6;
  layout.dp_shard = 4;
  const GroupShape tp = group_shape(cluster, layout, GroupKind::tp);
  EXPECT_THAT(tp.span, ElementsAre(6, 6, 0, 0));
  EXPECT_THAT(tp.least, ElementsAre(2, 6, 0, 0));
  EXPECT_THAT(tp.domains, ElementsAre(2, 1, 0, 0));
  EXPECT_THAT(tp.concurrent, ElementsAre(1, 2, 0, 0));
}

TEST(GroupShape, FollowsTheOrderOfRanks) {
  const ClusterSpec cluster = tiers_of({8, kMostGpus});
  Layout layout;
  layout.tp = 8;
  layout.pp = 4;
  layout.order = {Axis::pp, Axis::tp, Axis::cp, Axis::ep, Axis::dp_shard, Axis::dp_replicate};
  EXPECT_EQ(group_shape(cluster, layout, GroupKind::pp).tiers, 1);
  EXPECT_THAT(group_shape(cluster, layout, GroupKind::tp).span, ElementsAre(2, 8, 0, 0));
}

// As expert_decoder_rank_generator of Megatron-LM does (megatron/core/parallel_state.py).
TEST(GroupShape, FoldsExpertsOverTensorAndDataParallelRanks) {
  Layout layout;
  layout.tp = 2;
  layout.dp_shard = 8;
  layout.ep = 8;
  layout.etp = 1;
  EXPECT_THAT(group_ranks(layout, GroupKind::ep, 3), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(group_ranks(layout, GroupKind::edp, 3), ElementsAre(3, 11));
  EXPECT_THAT(group_ranks(layout, GroupKind::etp, 3), ElementsAre(3));
}

TEST(EvenGroup, IsTheShapeOfSuchALayout) {
  ClusterSpec cluster = tiers_of({8, kMostGpus});
  cluster.tiers[1].gpus_per_link = 2;
  Layout layout;
  layout.tp = 2;
  layout.dp_shard = 16;
  EXPECT_EQ(test::even_group(cluster, {2}), group_shape(cluster, layout, GroupKind::tp));
  EXPECT_EQ(test::even_group(cluster, {4, 16}), group_shape(cluster, layout, GroupKind::dp_shard));
  EXPECT_EQ(test::even_group(cluster, {8, 32}), group_shape(cluster, layout, GroupKind::world));
}

// n neighbours of a group that shares weights share them between forward and backward: PyTorch
// flattens the mesh and cuts it, view(-1, n).
TEST(GroupRanks, OfReshardCutTheGroupThatSharesWeights) {
  std::mt19937 random(11);
  int checked = 0;
  for (int draw = 0; draw < 200; ++draw) {
    Layout layout = random_layout(random);
    const std::int64_t shards = std::int64_t{layout.dp_shard} * layout.cp;
    for (const std::int32_t n : {2, 3, 4, 6, 8}) {
      const auto fits = [&](std::int64_t extent) { return n % extent == 0 || extent % n == 0; };
      if (shards % n != 0 || !fits(layout.cp) || !fits(layout.dp_shard)) continue;
      layout.reshard_after_forward = n;
      for (const std::int64_t rank : {std::int64_t{0}, layout.world() / 2, layout.world() - 1}) {
        const auto all = group_ranks(layout, GroupKind::dp_shard_cp, rank);
        const auto at = std::find(all.begin(), all.end(), rank) - all.begin();
        const auto first = all.begin() + at / n * n;
        EXPECT_EQ(group_ranks(layout, GroupKind::reshard, rank),
                  std::vector<std::int64_t>(first, first + n));
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace shardwise
