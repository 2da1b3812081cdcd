#include "simulator/workload/links.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/workload/rank_classes.h"
#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

/// Pipeline stages side by side: rank r is on stage r of pp.
Layout stages_on_neighbours(std::int32_t pp, std::int32_t dp = 1) {
  Layout layout;
  layout.pp = pp;
  layout.dp_shard = dp;
  layout.order = {Axis::pp, Axis::tp, Axis::cp, Axis::ep, Axis::dp_shard, Axis::dp_replicate};
  return layout;
}

void add_stage_transfer(HandMade& made, std::size_t stage, Stream stream, double seconds,
                        double share) {
  made.price(stage, made.add(stage, stream, seconds)).link_share[1] = share;
}

TEST(SharedLinks, AreNicsOfSeveralGpusAndOversubscribedUpLinks) {
  // p4d: 4 NICs of 100 Gbit/s for 8 GPUs.
  const std::vector<LinkKind> p4d = shared_links(*find_cluster("aws-p4d"));
  ASSERT_EQ(p4d.size(), 1U);
  EXPECT_EQ(p4d[0].ranks, 2);
  EXPECT_EQ(p4d[0].capacity, 1);
  // Llama 3's cluster: pods of 3,072 GPUs, 1:7 between them (arXiv:2407.21783, section 3.3.1).
  const std::vector<LinkKind> meta = shared_links(*find_cluster("meta-h100"));
  ASSERT_EQ(meta.size(), 1U);
  EXPECT_TRUE(meta[0].up_link);
  EXPECT_EQ(meta[0].ranks, 3072);
  EXPECT_DOUBLE_EQ(meta[0].capacity, 3072 / 7.0);
  EXPECT_TRUE(shared_links(*find_cluster("dgx-h100")).empty());
}

TEST(SharedNic, HalvesTheSpeedOfTwoRanksThatFillItAtOnce) {
  HandMade made(2);
  add_stage_transfer(made, 0, Stream::all_gather, 2, 1);
  add_stage_transfer(made, 1, Stream::all_gather, 4, 1);
  const std::vector<LinkKind> nic = {{1, 2, 1, false}};
  const Workload work = representatives(made.program, made.prices, stages_on_neighbours(2), nic);
  // Both at half speed until the first has moved its 2 s in 4 s; the other then has 2 s left.
  EXPECT_EQ(run_shared(work).end, (std::vector<double>{4, 6}));
}

TEST(SharedNic, CountsEveryRankThatARepresentativeStandsFor) {
  HandMade made;
  add_stage_transfer(made, 0, Stream::all_gather, 2, 0.5);
  Layout layout;
  layout.dp_shard = 8;
  const auto length = [&](std::int64_t gpus) {
    const std::vector<LinkKind> nic = {{1, gpus, 1, false}};
    return run_shared(representatives(made.program, made.prices, layout, nic)).length();
  };
  EXPECT_EQ(length(2), 2);
  EXPECT_EQ(length(4), 4);
  EXPECT_EQ(length(8), 8);
}

TEST(UpLink, SlowsTwoAxesThatCrossItAtOnceAndNeitherAlone) {
  // 4 GPUs behind an up-link as fast as 2 of their NICs: each axis alone asks for all of it.
  const std::vector<LinkKind> up = {{1, 4, 2, true}};
  Layout layout;
  layout.dp_shard = 8;
  HandMade one;
  add_stage_transfer(one, 0, Stream::reduce_scatter, 2, 0.5);
  EXPECT_EQ(run_shared(representatives(one.program, one.prices, layout, up)).length(), 2);
  add_stage_transfer(one, 0, Stream::tensor_parallel, 2, 0.5);
  EXPECT_EQ(run_shared(representatives(one.program, one.prices, layout, up)).length(), 4);
}

TEST(AlikeRanks, AreStagesWhereNoLinkJoinsStages) {
  Layout layout;
  layout.dp_shard = 8;
  layout.pp = 4;
  const std::vector<LinkKind> nic = {{1, 4, 1, false}};
  const std::vector<GroupKind> kinds = {GroupKind::pp, GroupKind::dp_shard};
  const RankClasses classes = alike_ranks(layout, nic, kinds);
  EXPECT_EQ(classes.stage, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(AlikeRanks, AreToldApartByWhomTheyShareALinkWith) {
  // 3 ranks a stage on NICs of 2: ranks 2 and 3 share one between the stages.
  Layout layout;
  layout.dp_shard = 3;
  layout.pp = 2;
  const std::vector<LinkKind> nic = {{1, 2, 1, false}};
  const std::vector<GroupKind> kinds = {GroupKind::dp_shard};
  EXPECT_EQ(alike_ranks(layout, nic, kinds).of_rank,
            (std::vector<std::uint32_t>{0, 0, 1, 2, 3, 3}));
}

/// What each rank does in 2 stages, drawn from a seed: kernels, transfers of its own and
/// collectives of its data-parallel group.
HandMade random_stages(std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  HandMade made(2);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    for (std::uint32_t i = 0; i < 100; ++i) {
      std::vector<std::uint32_t> waits;
      while (i > 0 && random() % 2 == 0) waits.push_back(random() % i);
      const auto stream = static_cast<Stream>(random() % kStreams);
      const double seconds = 1 + random() % 9;
      const bool meets = stream == Stream::reduce_scatter;
      const auto op = meets ? made.collective(stage, stream, seconds, GroupKind::dp_shard, waits)
                            : made.add(stage, stream, seconds, waits);
      if (stream == Stream::compute || stream == Stream::copy) continue;
      made.price(stage, op).tax.other = 0.1;
      for (double& share : made.price(stage, op).link_share) share = random() % 6 / 5.0;
    }
  }
  return made;
}

class RandomLinks : public testing::TestWithParam<std::uint32_t> {
 protected:
  RandomLinks() : made_(random_stages(GetParam())) {
    std::mt19937 engine(GetParam());
    layout_.pp = 2;
    layout_.dp_shard = 1 + static_cast<std::int32_t>(engine() % 6);
    links_ = {{0, 1 + static_cast<std::int64_t>(engine() % 4), 1, false},
              {1, 1 + static_cast<std::int64_t>(engine() % 5), 1.5, true}};
  }
  HandMade made_;
  Layout layout_;
  std::vector<LinkKind> links_;
};

TEST_P(RandomLinks, GiveRepresentativesTheTimesOfAllRanksToTheBit) {
  const std::vector<GroupKind> kinds = {GroupKind::pp, GroupKind::dp_shard};
  const RankClasses classes = alike_ranks(layout_, links_, kinds);
  const Workload few = representatives(made_.program, made_.prices, layout_, links_);
  const Workload all = all_ranks(made_.program, made_.prices, layout_, links_);
  ASSERT_EQ(few.actors.size(), classes.size());
  const Timeline one = run_shared(few);
  const Timeline each = run_shared(all);
  ASSERT_TRUE(one.stalled.empty());
  ASSERT_TRUE(each.stalled.empty());
  for (const Actor& actor : all.actors) {
    const Actor& like = few.actors[classes.of_rank[static_cast<std::size_t>(actor.rank)]];
    for (std::size_t i = 0; i < 100; ++i) {
      ASSERT_EQ(each.start[actor.base + i], one.start[like.base + i]) << actor.rank;
      ASSERT_EQ(each.end[actor.base + i], one.end[like.base + i]) << actor.rank;
    }
  }
}

TEST_P(RandomLinks, CarryNoMoreThanTheirRateAndMoveNothingFasterThanAlone) {
  const Workload work = all_ranks(made_.program, made_.prices, layout_, links_);
  const Timeline timeline = run_shared(work);
  std::vector<double> sent(work.links.size());
  for (const Actor& actor : work.actors) {
    const StageProgram& stage = work.program_of(actor);
    for (std::uint32_t i = 0; i < stage.operations.size(); ++i) {
      const CostPrice& price = made_.price(actor.program, i);
      const double took = timeline.end[actor.base + i] - timeline.start[actor.base + i];
      EXPECT_GE(took, price.seconds * (1 - 1e-12));
      if (stage.operations[i].stream == Stream::receive) continue;
      for (std::uint32_t u = actor.links.begin; u != actor.links.end; ++u) {
        const std::uint32_t link = work.link_uses[u].link;
        sent[link] += price.seconds * price.link_share[work.links[link].tier];
      }
    }
  }
  for (std::size_t l = 0; l < sent.size(); ++l) {
    EXPECT_LE(sent[l], work.links[l].capacity * timeline.length() * (1 + 1e-9));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLinks, testing::Range(0U, 40U));

}  // namespace
}  // namespace shardwise::sim
