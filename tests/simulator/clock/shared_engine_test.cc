#include "simulator/clock/shared_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stop_token>

#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

Timeline shared_timeline(const HandMade& made, const LaunchRules& launch = {}) {
  return run_shared(representatives(made.program, made.prices, launch));
}

/// A transfer that keeps `share` of the rank's links of tier 0 busy.
std::uint32_t add_transfer(HandMade& made, Stream stream, double seconds, double share) {
  const std::uint32_t op = made.add(0, stream, seconds);
  made.price(0, op).link_share[0] = share;
  return op;
}

TEST(SharedEngine, EndsNoOperationOnceItIsAskedToStop) {
  const HandMade made = one_f_one_b({});
  const Workload work = representatives(made.program, made.prices);
  std::stop_source stop;
  EXPECT_FALSE(run_shared(work, stop.get_token()).stopped);
  EXPECT_EQ(run_shared(work, stop.get_token()).end, run_shared(work).end);
  stop.request_stop();
  const Timeline timeline = run_shared(work, stop.get_token());
  EXPECT_TRUE(timeline.stopped);
  EXPECT_TRUE(std::ranges::all_of(timeline.end, [](double end) { return end < 0; }));
}

TEST(SharedLinks, HalveTheSpeedOfTwoTransfersThatEachFillThem) {
  HandMade made;
  add_transfer(made, Stream::all_gather, 2, 1);
  add_transfer(made, Stream::reduce_scatter, 4, 1);
  // Both at half speed until the first has moved its 2 s in 4 s; the other then has 2 s left.
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{4, 6}));
}

TEST(SharedLinks, CarryTwoTransfersAtFullSpeedWhenTheirSumFits) {
  HandMade made;
  add_transfer(made, Stream::all_gather, 2, 0.5);
  add_transfer(made, Stream::reduce_scatter, 4, 0.5);
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{2, 4}));
}

TEST(SharedLinks, CarryWhatIsSentBesideWhatIsReceived) {
  HandMade made;
  add_transfer(made, Stream::send, 2, 1);
  add_transfer(made, Stream::receive, 2, 1);
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{2, 2}));
}

TEST(SharedLinks, AreThoseOfATier) {
  HandMade made;
  add_transfer(made, Stream::all_gather, 2, 1);
  const auto other = made.add(0, Stream::reduce_scatter, 2);
  made.price(0, other).link_share[1] = 1;
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{2, 2}));
}

TEST(SharedMultiprocessors, SlowComputeWhileBytesMove) {
  HandMade made;
  made.add(0, Stream::compute, 4);
  const auto gather = made.add(0, Stream::all_gather, 2);
  made.price(0, gather).tax.other = 0.25;
  // 2 s at three quarters of the speed leave 2.5 s of work.
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{4.5, 2}));
}

TEST(SharedMultiprocessors, LeaveComputeAtLeastHalf) {
  HandMade made;
  made.add(0, Stream::compute, 1);
  for (const Stream stream : {Stream::all_gather, Stream::reduce_scatter}) {
    made.price(0, made.add(0, stream, 9)).tax.other = 0.4;
  }
  EXPECT_EQ(shared_timeline(made).end[0], 2);
}

TEST(SharedMultiprocessors, AreFreeWhileAMessageWaitsForItsOtherEnd) {
  HandMade made(2);
  made.add(0, Stream::compute, 4);
  const auto receive = made.add(0, Stream::receive, 1);
  const auto kernel = made.add(1, Stream::compute, 6);
  const auto send = made.add(1, Stream::send, 1, {kernel});
  made.op(0, receive).message = made.op(1, send).message = 0;
  made.price(0, receive).tax.other = 0.5;
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{4, 7, 6, 7}));
}

/// A kernel that memory bandwidth holds up for `bound` of its time beside a transfer of 9 s that
/// would take `moving` of the bandwidth.
Timeline beside_transfer(double seconds, double bound, double moving) {
  HandMade made;
  made.price(0, made.add(0, Stream::compute, seconds)).memory_share = bound;
  made.price(0, made.add(0, Stream::all_gather, 9)).memory_share = moving;
  return shared_timeline(made);
}

TEST(SharedMemoryBandwidth, SlowsAMemoryBoundKernelAndATransferAlike) {
  // Together they ask for 5/4 of the bandwidth: 4 s of kernel take 5 s, in which the transfer moves
  // 4 of its 9 s.
  const Timeline timeline = beside_transfer(4, 1, 0.25);
  EXPECT_EQ(timeline.end, (std::vector<double>{5, 10}));
}

TEST(SharedMemoryBandwidth, LeavesMatrixProductsAlone) {
  EXPECT_EQ(beside_transfer(4, 0, 0.25).end, (std::vector<double>{4, 9}));
}

TEST(SharedMemoryBandwidth, SlowsALayerByItsMemoryBoundShare) {
  // Half of the layer loses 1/5: it runs at 9/10, and so does the transfer.
  const Timeline timeline = beside_transfer(4.5, 0.5, 0.25);
  EXPECT_DOUBLE_EQ(timeline.end[0], 5);
  EXPECT_DOUBLE_EQ(timeline.end[1], 5 + (9 - 4.5));
}

TEST(SharedMemoryBandwidth, IsHalvedForTwoCopiesAtOnce) {
  HandMade made;
  for (const Stream stream : {Stream::compute, Stream::copy}) {
    made.price(0, made.add(0, stream, 2)).memory_share = 1;
  }
  EXPECT_EQ(shared_timeline(made).end, (std::vector<double>{4, 4}));
}

TEST(SharedMemoryBandwidth, CountsOnceWhereMultiprocessorsAreLostAsWell) {
  HandMade made;
  made.price(0, made.add(0, Stream::compute, 4)).memory_share = 1;
  CostPrice& gather = made.price(0, made.add(0, Stream::all_gather, 9));
  gather.memory_share = 0.25;
  gather.tax.other = 0.5;  // more than the fifth of the bandwidth
  EXPECT_EQ(shared_timeline(made).end[0], 8);
}

class SharedRandomProgram : public testing::TestWithParam<std::uint32_t> {};

HandMade random_shared_program(std::uint32_t seed, bool shares) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  HandMade made;
  for (std::uint32_t i = 0; i < 300; ++i) {
    std::vector<std::uint32_t> waits;
    while (i > 0 && random() % 2 == 0) waits.push_back(random() % i);
    const auto stream = static_cast<Stream>(random() % kStreams);
    const auto op = made.add(0, stream, 1 + random() % 9, waits);
    if (shares) made.price(0, op).memory_share = random() % 3 / 4.0;
    if (!shares || stream == Stream::compute || stream == Stream::copy) continue;
    made.price(0, op).tax.other = 0.1;
    for (double& share : made.price(0, op).link_share) share = random() % 5 / 4.0;
  }
  return made;
}

TEST_P(SharedRandomProgram, IsToTheBitAsAloneWhenNothingIsShared) {
  const HandMade made = random_shared_program(GetParam(), false);
  for (const LaunchRules& launch :
       {LaunchRules{}, LaunchRules{0.75, false}, LaunchRules{0.5, true}}) {
    const Workload work = representatives(made.program, made.prices, launch);
    const Timeline alone = run_alone(work);
    const Timeline shared = run_shared(work);
    EXPECT_EQ(alone.start, shared.start);
    EXPECT_EQ(alone.end, shared.end);
  }
}

TEST_P(SharedRandomProgram, RunsNothingFasterThanAlone) {
  const HandMade made = random_shared_program(GetParam(), true);
  const Workload work = representatives(made.program, made.prices);
  const Timeline shared = run_shared(work);
  for (std::size_t i = 0; i < shared.end.size(); ++i) {
    EXPECT_GE(shared.end[i] - shared.start[i], made.prices[0][i].seconds * (1 - 1e-12));
  }
  EXPECT_GE(shared.length(), run_alone(work).length() * (1 - 1e-12));
}

TEST_P(SharedRandomProgram, MovesNoMoreThanALinkCarries) {
  const HandMade made = random_shared_program(GetParam(), true);
  const Timeline shared = shared_timeline(made);
  // All bytes of a tier, as time at its full rate, against the time it had.
  for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
    double sent = 0;
    for (std::size_t i = 0; i < made.prices[0].size(); ++i) {
      const Stream stream = made.program.stages[0].operations[i].stream;
      if (stream == Stream::receive) continue;
      sent += made.prices[0][i].seconds * made.prices[0][i].link_share[tier];
    }
    EXPECT_LE(sent, shared.length() * (1 + 1e-9));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SharedRandomProgram, testing::Range(0U, 20U));

TEST(SharedAllRanks, AgreeExactlyWithTheRepresentative) {
  HandMade made = fsdp(20);
  for (CostPrice& price : made.prices[0]) price.tax.other = 0.1;
  for (std::uint32_t i = 0; i < made.prices[0].size(); ++i) {
    const Stream stream = made.op(0, i).stream;
    if (stream != Stream::compute) made.prices[0][i].link_share = {0.9, 0.7, 0, 0};
  }
  Layout layout;
  layout.dp_shard = 16;
  const Timeline one = shared_timeline(made);
  const Workload work = all_ranks(made.program, made.prices, layout);
  const Timeline all = run_shared(work);
  EXPECT_GT(one.length(), run_alone(representatives(made.program, made.prices)).length());
  for (const Actor& actor : work.actors) {
    for (std::size_t i = 0; i < one.end.size(); ++i) {
      ASSERT_EQ(all.end[actor.base + i], one.end[i]);
    }
  }
}

TEST(SharedAllRanks, AreAsSlowAsTheSlowestOfThem) {
  // Two ranks in a collective of 4 s; on the second it shares its link for 2 s with a transfer that
  // fills it, so both move at half speed until the transfer's 2 s took 4 s, and then have 2 s left.
  HandMade made(1);
  made.collective(0, Stream::all_gather, 4, GroupKind::dp_shard);
  add_transfer(made, Stream::context_parallel, 2, 1);
  made.price(0, 0).link_share[0] = 1;
  Layout layout;
  layout.dp_shard = 2;
  Workload work = all_ranks(made.program, made.prices, layout);
  const Timeline both = run_shared(work);
  EXPECT_EQ(both.end, (std::vector<double>{6, 4, 6, 4}));
  // On the first rank the transfer takes four times as long on what is left of its links, and so
  // the collective, which crowds nobody on the second, ends there as late.
  work.noise.link_delay.resize(2);
  work.noise.link_delay[0][0] = 3;
  const Timeline one = run_shared(work);
  EXPECT_EQ(one.end[0], one.end[2]);
  EXPECT_EQ(one.end[1], 16);
  EXPECT_EQ(one.end[3], 4);
  // 4 s of collective: an eighth of its speed for 16 s, then a quarter for 8.
  EXPECT_EQ(one.end[0], 24);
}

}  // namespace
}  // namespace shardwise::sim
