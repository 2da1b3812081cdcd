#include "executor/kernels/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace shardwise::exec {
namespace {

TEST(Workers, RunEveryTaskOnceHoweverManyThreads) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    EXPECT_EQ(workers.threads(), threads);
    for (const int count : {0, 1, 2, 3, 100}) {
      std::vector<int> times(static_cast<std::size_t>(count), 0);
      workers.run(count, [&](std::int64_t task) { ++times[static_cast<std::size_t>(task)]; });
      for (const int each : times) EXPECT_EQ(each, 1);
    }
  }
}

TEST(Workers, AreDoneWhenRunReturns) {
  Workers workers(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> finished = 0;
    workers.run(7, [&](std::int64_t) { ++finished; });
    ASSERT_EQ(finished, 7);
  }
}

}  // namespace
}  // namespace shardwise::exec
