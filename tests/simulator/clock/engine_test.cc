#include "simulator/clock/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stop_token>

#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

Timeline alone_timeline(const HandMade& made, const LaunchRules& launch = {}) {
  return run_alone(representatives(made.program, made.prices, launch));
}

TEST(Engine, EndsNoOperationOnceItIsAskedToStop) {
  const HandMade made = one_f_one_b({});
  const Workload work = representatives(made.program, made.prices);
  std::stop_source stop;
  EXPECT_FALSE(run_alone(work, stop.get_token()).stopped);
  EXPECT_EQ(run_alone(work, stop.get_token()).end, run_alone(work).end);
  stop.request_stop();
  const Timeline timeline = run_alone(work, stop.get_token());
  EXPECT_TRUE(timeline.stopped);
  EXPECT_TRUE(std::ranges::all_of(timeline.end, [](double end) { return end < 0; }));
}

TEST(Engine, RunsAStreamInOrderAndStreamsBesideEachOther) {
  HandMade made;
  made.add(0, Stream::compute, 2);
  made.add(0, Stream::all_gather, 3);
  made.add(0, Stream::compute, 4);
  const Timeline timeline = alone_timeline(made);
  EXPECT_EQ(timeline.start, (std::vector<double>{0, 0, 2}));
  EXPECT_EQ(timeline.end, (std::vector<double>{2, 3, 6}));
  EXPECT_EQ(timeline.length(), 6);
}

TEST(Engine, StartsAnOperationWhenTheLastOfThoseItWaitsForHasEnded) {
  HandMade made;
  const auto gather = made.add(0, Stream::all_gather, 5);
  const auto copy = made.add(0, Stream::copy, 1);
  const auto kernel = made.add(0, Stream::compute, 1, {gather, copy});
  made.add(0, Stream::all_gather, 1, {kernel});
  EXPECT_EQ(alone_timeline(made).end, (std::vector<double>{5, 1, 6, 7}));
}

TEST(Engine, EndsBothSidesOfAMessageTogether) {
  HandMade made(2);
  const auto kernel = made.add(0, Stream::compute, 3);
  const auto send = made.add(0, Stream::send, 2, {kernel});
  made.op(0, send).message = 0;
  const auto receive = made.add(1, Stream::receive, 2);
  made.op(1, receive).message = 0;
  made.add(1, Stream::compute, 1, {receive});
  const Timeline timeline = alone_timeline(made);
  // The receiver's kernel is there from the beginning and waits for the bytes.
  EXPECT_EQ(timeline.start, (std::vector<double>{0, 3, 0, 5}));
  EXPECT_EQ(timeline.end, (std::vector<double>{3, 5, 5, 6}));
}

TEST(Engine, CrossesMessagesThatBothSidesSendFirst) {
  HandMade made(2);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const auto send = made.add(stage, Stream::send, 1);
    made.op(stage, send).message = static_cast<std::int32_t>(stage);
    const auto receive = made.add(stage, Stream::receive, 1);
    made.op(stage, receive).message = 1 - static_cast<std::int32_t>(stage);
  }
  const Timeline timeline = alone_timeline(made);
  EXPECT_TRUE(timeline.stalled.empty());
  EXPECT_EQ(timeline.length(), 1);
}

TEST(Engine, NamesTheOperationsThatHangWhenStagesMeetInDifferentOrders) {
  HandMade made(2);
  for (const std::int32_t message : {0, 1}) {
    made.op(0, made.add(0, Stream::send, 1)).message = message;
    made.op(1, made.add(1, Stream::receive, 1)).message = 1 - message;
  }
  const Timeline timeline = alone_timeline(made);
  EXPECT_EQ(timeline.stalled, (std::vector<std::size_t>{0, 2}));
}

TEST(Engine, WaitsForTheHostToIssueEachKernel) {
  HandMade made;
  for (int i = 0; i < 3; ++i) made.add(0, Stream::compute, 0.25);
  // One kernel a second: the device runs dry between them.
  EXPECT_EQ(alone_timeline(made, {1, false}).start, (std::vector<double>{1, 2, 3}));
}

TEST(Engine, EndsAnOperationOfManyKernelsNoEarlierThanItsLastIsIssued) {
  HandMade made;
  const auto op = made.add(0, Stream::compute, 2);
  made.price(0, op).launches = 10;
  const Timeline timeline = alone_timeline(made, {1, false});
  EXPECT_EQ(timeline.start[0], 1);
  EXPECT_EQ(timeline.end[0], 10);
}

TEST(Engine, LetsTheHostRunAheadOfALongKernel) {
  HandMade made;
  made.add(0, Stream::compute, 10);
  made.add(0, Stream::compute, 1);
  EXPECT_EQ(alone_timeline(made, {1, false}).start, (std::vector<double>{1, 11}));
}

TEST(Engine, HoldsAStreamBackBehindWhatWasIssuedBeforeOnOneQueue) {
  HandMade made;
  const auto gather = made.add(0, Stream::all_gather, 5);
  made.add(0, Stream::compute, 1, {gather});
  made.add(0, Stream::tensor_parallel, 1);
  EXPECT_EQ(alone_timeline(made).start[2], 0);
  // The head of the only queue waits for the gather, and so does what stands behind it.
  EXPECT_EQ(alone_timeline(made, {0, true}).start[2], 5);
}

TEST(Engine, AgreesToTheBitWhenRunTwice) {
  const HandMade made = fsdp(40);
  const Timeline first = alone_timeline(made);
  const Timeline second = alone_timeline(made);
  EXPECT_EQ(first.start, second.start);
  EXPECT_EQ(first.end, second.end);
}

/// Programs of random operations on random streams.
HandMade random_program(std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  HandMade made;
  for (std::uint32_t i = 0; i < 300; ++i) {
    std::vector<std::uint32_t> waits;
    while (i > 0 && random() % 2 == 0) waits.push_back(random() % i);
    made.add(0, static_cast<Stream>(random() % kStreams), 1 + random() % 9, waits);
  }
  return made;
}

class RandomProgram : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomProgram, IsNeverShorterThanItsLongestChainOrItsBusiestStream) {
  const HandMade made = random_program(GetParam());
  const StageProgram& stage = made.program.stages[0];
  std::vector<double> chain(stage.operations.size());
  std::array<double, kStreams> busy{};
  for (std::size_t i = 0; i < stage.operations.size(); ++i) {
    for (const std::uint32_t wait : stage.of(stage.operations[i].waits)) {
      chain[i] = std::max(chain[i], chain[wait]);
    }
    chain[i] += made.prices[0][i].seconds;
    busy[static_cast<std::size_t>(stage.operations[i].stream)] += made.prices[0][i].seconds;
  }
  const double length = alone_timeline(made).length();
  EXPECT_GE(length, *std::max_element(chain.begin(), chain.end()));
  EXPECT_GE(length, *std::max_element(busy.begin(), busy.end()));
}

TEST_P(RandomProgram, OverlapsNothingOnAStream) {
  const HandMade made = random_program(GetParam());
  const Timeline timeline = alone_timeline(made);
  std::array<double, kStreams> free{};
  for (std::size_t i = 0; i < made.program.stages[0].operations.size(); ++i) {
    double& at = free[static_cast<std::size_t>(made.program.stages[0].operations[i].stream)];
    EXPECT_GE(timeline.start[i], at);
    at = timeline.end[i];
  }
}

TEST_P(RandomProgram, StartsInIssueOrderOnOneQueue) {
  const Timeline timeline = alone_timeline(random_program(GetParam()), {0.5, true});
  EXPECT_TRUE(std::is_sorted(timeline.start.begin(), timeline.start.end()));
  EXPECT_TRUE(timeline.stalled.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, testing::Range(0U, 20U));

TEST(AllRanks, AgreesExactlyWithTheRepresentative) {
  const HandMade made = fsdp(20);
  Layout layout;
  layout.dp_shard = 16;
  const Timeline one = alone_timeline(made);
  const Workload work = all_ranks(made.program, made.prices, layout);
  const Timeline all = run_alone(work);
  ASSERT_EQ(work.actors.size(), 16U);
  for (const Actor& actor : work.actors) {
    for (std::size_t i = 0; i < one.end.size(); ++i) {
      ASSERT_EQ(all.start[actor.base + i], one.start[i]);
      ASSERT_EQ(all.end[actor.base + i], one.end[i]);
    }
  }
}

TEST(AllRanks, AgreesExactlyWithTheRepresentativesOfAPipeline) {
  HandMade made = one_f_one_b({4, 8, 2, 1, 2, 0.125});
  for (std::size_t s = 0; s < 4; ++s) {
    made.collective(s, Stream::reduce_scatter, 3, GroupKind::dp_shard_cp);
    made.collective(s, Stream::compute, 1, GroupKind::world);
  }
  Layout layout;
  layout.pp = 4;
  layout.vpp = 2;
  layout.tp = 2;
  layout.dp_shard = 3;
  const Workload few = representatives(made.program, made.prices);
  const Timeline some = run_alone(few);
  const Workload work = all_ranks(made.program, made.prices, layout);
  const Timeline all = run_alone(work);
  ASSERT_TRUE(all.stalled.empty());
  ASSERT_EQ(work.actors.size(), 24U);
  for (const Actor& actor : work.actors) {
    const std::size_t base = few.actors[actor.program].base;
    for (std::size_t i = 0; i < made.program.stages[actor.program].operations.size(); ++i) {
      ASSERT_EQ(all.end[actor.base + i], some.end[base + i]);
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
