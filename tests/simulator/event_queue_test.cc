#include "simulator/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace shardwise::sim {
namespace {

TEST(EventQueue, GivesTheEarliestAndThenNothing) {
  EventQueue queue(3);
  queue.set(0, 5);
  queue.set(2, 4);
  EXPECT_EQ(queue.time(), 4);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 0);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, MovesALaneBothWays) {
  EventQueue queue(2);
  queue.set(0, 5);
  queue.set(1, 6);
  queue.set(0, 7);
  EXPECT_EQ(queue.time(), 6);
  queue.set(0, 1);
  EXPECT_EQ(queue.pop(), 0);
  EXPECT_EQ(queue.pop(), 1);
}

class EventQueueOfLanes : public testing::TestWithParam<std::size_t> {};

// What std::map says of the same lanes, for few times that many lanes share and for many.
TEST_P(EventQueueOfLanes, AgreesWithASearchOfAllOfThem) {
  const std::size_t lanes = GetParam();
  std::mt19937 engine(static_cast<std::uint32_t>(lanes));
  for (const std::uint32_t times : {4U, 1000000U}) {
    EventQueue queue(lanes);
    std::map<std::int32_t, double> due;
    for (int step = 0; step < 2000; ++step) {
      if (engine() % 3 != 0) {
        const auto lane = static_cast<std::int32_t>(engine() % lanes);
        due[lane] = static_cast<double>(engine() % times);
        queue.set(lane, due[lane]);
      } else if (!due.empty()) {
        double earliest = due.begin()->second;
        for (const auto& each : due) earliest = std::min(earliest, each.second);
        ASSERT_EQ(queue.time(), earliest);
        const std::int32_t lane = queue.pop();
        ASSERT_EQ(due.at(lane), earliest);
        due.erase(lane);
      }
      ASSERT_EQ(queue.empty(), due.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EventQueueOfLanes, testing::Values(1, 2, 3, 7, 64, 100));

}  // namespace
}  // namespace shardwise::sim
