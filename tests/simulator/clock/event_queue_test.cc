#include "simulator/clock/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace shardwise::sim {
namespace {

/// Ranks of 1, 2, 3, 1, 2, 3 … lanes.
std::vector<std::uint32_t> first_lanes(std::size_t ranks) {
  std::vector<std::uint32_t> first = {0};
  for (std::uint32_t r = 0; r < ranks; ++r) first.push_back(first.back() + r % 3 + 1);
  return first;
}

/// The lanes that the queue gives next, in order of their numbers.
std::vector<std::int32_t> taken(EventQueue& queue) {
  std::vector<std::int32_t> lanes;
  queue.take(lanes);
  std::sort(lanes.begin(), lanes.end());
  return lanes;
}

TEST(EventQueue, GivesTheEarliestAndThenNothing) {
  EventQueue queue({0, 1, 3});
  queue.set(0, 0, 5);
  queue.set(1, 2, 4);
  EXPECT_EQ(queue.time(), 4);
  EXPECT_EQ(taken(queue), std::vector<std::int32_t>{2});
  EXPECT_EQ(taken(queue), std::vector<std::int32_t>{0});
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, GivesAllThatAreDueAtOnce) {
  EventQueue queue({0, 2, 3, 5});
  queue.set(0, 0, 7);
  queue.set(0, 1, 7);
  queue.set(1, 2, 7);
  queue.set(2, 4, 7);
  queue.set(2, 3, 8);
  EXPECT_EQ(taken(queue), (std::vector<std::int32_t>{0, 1, 2, 4}));
  EXPECT_EQ(queue.time(), 8);
}

TEST(EventQueue, MovesALaneBothWays) {
  EventQueue queue({0, 1, 2});
  queue.set(0, 0, 5);
  queue.set(1, 1, 6);
  queue.set(0, 0, 7);
  EXPECT_EQ(queue.time(), 6);
  queue.set(0, 0, 1);
  EXPECT_EQ(taken(queue), std::vector<std::int32_t>{0});
  EXPECT_EQ(taken(queue), std::vector<std::int32_t>{1});
}

class EventQueueOfRanks : public testing::TestWithParam<std::size_t> {};

// What std::map says of the same lanes, for few times that many lanes share and for many.
TEST_P(EventQueueOfRanks, AgreesWithASearchOfAllLanes) {
  const std::vector<std::uint32_t> first = first_lanes(GetParam());
  std::mt19937 engine(static_cast<std::uint32_t>(GetParam()));
  for (const std::uint32_t times : {4U, 1000000U}) {
    EventQueue queue(first);
    std::map<std::int32_t, double> due;
    for (int step = 0; step < 2000; ++step) {
      if (engine() % 3 != 0) {
        const auto rank = static_cast<std::uint32_t>(engine() % GetParam());
        const auto lane = static_cast<std::int32_t>(first[rank] + engine() % (rank % 3 + 1));
        due[lane] = static_cast<double>(engine() % times);
        queue.set(rank, lane, due[lane]);
      } else if (!due.empty()) {
        double earliest = due.begin()->second;
        for (const auto& each : due) earliest = std::min(earliest, each.second);
        std::vector<std::int32_t> expected;
        for (const auto& [lane, time] : due) {
          if (time == earliest) expected.push_back(lane);
        }
        ASSERT_EQ(queue.time(), earliest);
        ASSERT_EQ(taken(queue), expected);
        for (const std::int32_t lane : expected) due.erase(lane);
      }
      ASSERT_EQ(queue.empty(), due.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EventQueueOfRanks, testing::Values(1, 2, 3, 7, 64, 100));

}  // namespace
}  // namespace shardwise::sim
