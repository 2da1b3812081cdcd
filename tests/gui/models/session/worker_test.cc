#include "gui/models/session/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <vector>

namespace shardwise::view {
namespace {

TEST(Worker, AppliesTheNewestResultOfAKindAndNoOlder) {
  Worker worker;
  worker.hold();
  std::vector<int> applied;
  for (int i = 0; i < 50; ++i) {
    worker.post("rows", [&applied, i](const Worker::Task&) -> Worker::Apply {
      return [&applied, i] { applied.push_back(i); };
    });
  }
  worker.post("bars", [&applied](const Worker::Task&) -> Worker::Apply {
    return [&applied] { applied.push_back(-1); };
  });
  EXPECT_FALSE(worker.collect());
  worker.release();
  worker.finish();
  EXPECT_TRUE(worker.collect());
  EXPECT_EQ(applied, (std::vector<int>{49, -1}));
}

TEST(Worker, StopsAJobWhenANewerOfItsKindComes) {
  Worker worker;
  std::latch runs(1);
  std::atomic<bool> stopped = false;
  int applied = 0;
  worker.post("rows", [&](const Worker::Task& task) -> Worker::Apply {
    runs.count_down();
    while (!task.stop.stop_requested()) std::this_thread::yield();
    stopped = true;
    return [&applied] { applied = 1; };
  });
  runs.wait();
  worker.post("rows",
              [&](const Worker::Task&) -> Worker::Apply { return [&applied] { applied = 2; }; });
  worker.finish();
  worker.collect();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(applied, 2);
}

TEST(Worker, DropsAResultThatANewerQuestionOvertook) {
  Worker worker;
  int applied = 0;
  worker.post("rows",
              [&](const Worker::Task&) -> Worker::Apply { return [&applied] { applied = 1; }; });
  worker.finish();  // the result waits to be collected
  worker.hold();
  worker.post("rows",
              [&](const Worker::Task&) -> Worker::Apply { return [&applied] { applied = 2; }; });
  worker.collect();
  EXPECT_EQ(applied, 0);
  worker.release();
  worker.finish();
  worker.collect();
  EXPECT_EQ(applied, 2);
}

TEST(Worker, FinishesOneJobWhileTheNextRuns) {
  Worker worker;
  worker.hold();
  std::latch waits(1);
  std::vector<int> applied;
  worker.post("step",
              [&](const Worker::Task&) -> Worker::Apply { return [&] { applied.push_back(1); }; });
  worker.post("rows", [&](const Worker::Task&) -> Worker::Apply {
    waits.wait();
    return [&] { applied.push_back(2); };
  });
  worker.release();
  worker.finish_one();
  EXPECT_TRUE(worker.collect());
  EXPECT_EQ(applied, std::vector<int>{1});
  waits.count_down();
  worker.finish_one();
  worker.finish_one();  // there is none left
  worker.collect();
  EXPECT_EQ(applied, (std::vector<int>{1, 2}));
}

TEST(Worker, HandsOutResultsBeforeAJobIsDone) {
  Worker worker;
  std::latch published(1);
  std::latch collected(1);
  std::vector<int> applied;
  worker.post("rows", [&](const Worker::Task& task) -> Worker::Apply {
    task.publish([&applied] { applied.push_back(1); });
    published.count_down();
    collected.wait();
    return [&applied] { applied.push_back(2); };
  });
  published.wait();
  EXPECT_TRUE(worker.collect());
  EXPECT_EQ(applied, std::vector<int>{1});
  collected.count_down();
  worker.finish();
  worker.collect();
  EXPECT_EQ(applied, (std::vector<int>{1, 2}));
}

TEST(Worker, HandsAnErrorToTheCollector) {
  Worker worker;
  worker.post("rows",
              [](const Worker::Task&) -> Worker::Apply { throw std::runtime_error("disk full"); });
  worker.finish();
  EXPECT_THROW(worker.collect(), std::runtime_error);
  EXPECT_FALSE(worker.busy());
}

TEST(Worker, EndsWhileAJobRunsAndOthersWait) {
  std::latch runs(1);
  auto worker = std::make_unique<Worker>();
  worker->post("rows", [&](const Worker::Task& task) -> Worker::Apply {
    runs.count_down();
    while (!task.stop.stop_requested()) std::this_thread::yield();
    return {};
  });
  worker->post("bars", [](const Worker::Task&) -> Worker::Apply { return {}; });
  runs.wait();
  worker.reset();
}

}  // namespace
}  // namespace shardwise::view
