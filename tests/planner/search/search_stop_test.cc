#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/work_list.h"
#include "tests/planner/search/search_job.h"

namespace shardwise {
namespace {

std::int64_t looked_at(const SearchResult& result) {
  std::int64_t layouts = 0;
  for (const SearchCounts& each : result.counts) {
    layouts += each.ranked + each.too_slow + each.at_risk + each.does_not_fit;
  }
  return layouts;
}

TEST(StoppedSearch, SaysSoAndLooksAtNothingWhenItIsStoppedBefore) {
  for (const Breadth breadth : {Breadth::usual, Breadth::full}) {
    for (const int threads : {1, 3}) {
      SearchJob job("gpt2-xl", 16, "megatron_fsdp");
      std::stop_source source;
      job.request.stop = source.get_token();
      job.request.threads = threads;
      job.request.breadth = breadth;
      source.request_stop();
      const SearchResult result = job.found();
      EXPECT_TRUE(result.stopped);
      EXPECT_TRUE(result.best.empty());
      EXPECT_EQ(looked_at(result), 0);
    }
  }
}

TEST(StoppedSearch, HasTheBestOfWhatItHasLookedAt) {
  SearchJob job("gpt2-xl", 16, "megatron_fsdp");
  EXPECT_FALSE(job.found().stopped);
  const std::int64_t all = looked_at(job.found());
  std::stop_source source;
  job.request.stop = source.get_token();
  std::vector<Candidate> last;
  job.request.progress = [&](const SearchProgress& progress) {
    last.assign(progress.best.begin(), progress.best.end());
    if (!last.empty()) source.request_stop();
  };
  const SearchResult result = job.found();
  EXPECT_TRUE(result.stopped);
  EXPECT_LT(looked_at(result), all);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(layouts_of(result.best), layouts_of(last));
  for (const Candidate& each : result.best) {
    const Evaluation cost =
        evaluate(job.model, job.cluster, job.job, *job.request.engines.front(), each.layout);
    EXPECT_EQ(each.cost.point, cost.point);
    EXPECT_LE(each.cost.upper, result.usable);
    EXPECT_NEAR(each.cost.step_time / cost.step_time, 1, 1e-12);
  }
}

// Beyond the usual space its answer is found first, and is all there is when the rest is stopped.
TEST(StoppedSearch, KeepsTheAnswerOfTheUsualSpace) {
  SearchJob job("gpt2-xl", 8, "fsdp2");
  const SearchResult usual = job.found();
  std::stop_source source;
  job.request.breadth = Breadth::full;
  job.request.stop = source.get_token();
  job.request.progress = [&](const SearchProgress&) { source.request_stop(); };
  const SearchResult result = job.found();
  EXPECT_TRUE(result.stopped);
  ASSERT_FALSE(result.best.empty());
  EXPECT_LE(result.best.front().cost.step_time, usual.best.front().cost.step_time);
}

TEST(RunningSearch, SaysTheBestSoFarFromOneThread) {
  // Of more threads than tasks the one that asks may come too late for any of them.
  for (const int threads : {1, 3, 64}) {
    SearchJob job("gpt2-xl", 16, "megatron_ddp");
    job.request.threads = threads;
    const std::thread::id asking = std::this_thread::get_id();
    std::vector<Candidate> last;
    job.request.progress = [&](const SearchProgress& progress) {
      EXPECT_EQ(std::this_thread::get_id(), asking);
      EXPECT_TRUE(std::ranges::is_sorted(progress.best, [](const auto& a, const auto& b) {
        return ranks_before(Objective::step_time, a, b);
      }));
      if (!last.empty()) {
        ASSERT_GE(progress.best.size(), last.size());
        EXPECT_LE(progress.best.front().cost.step_time, last.front().cost.step_time);
      }
      last.assign(progress.best.begin(), progress.best.end());
    };
    const SearchResult result = job.found();
    ASSERT_FALSE(last.empty());
    EXPECT_EQ(layouts_of(last), layouts_of(result.best));
  }
}

/// Asks to stop at the n-th call, and counts the calls after that.
class Stopping final : public LayoutVisitor {
 public:
  explicit Stopping(std::int64_t last) : left_(last) {}
  Seconds memory(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {
    call();
    return Seconds(1e300);
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override { call(); }

  std::stop_source source;
  std::int64_t calls = 0;

 private:
  void call() {
    ++calls;
    if (--left_ == 0) source.request_stop();
  }
  std::int64_t left_;
};

// Within one share of the space, however long that is.
TEST(StoppedEvaluator, LooksAtNoFurtherLayout) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  job.request.memory = std::make_shared<SearchMemory>();
  WorkList work = *work_list(job.ask());
  work.place(job.request);
  SpaceCounts counts = work.spaces.front()->enumerator->no_counts();
  for (const std::int64_t calls : {1, 2, 3, 50}) {
    Evaluator evaluator(job.model, job.cluster, job.job, *job.request.engines.front());
    Stopping visitor(calls);
    for (const SearchTask& task : work.tasks) {
      evaluator.run(work.item(task, counts), visitor, visitor.source.get_token());
    }
    EXPECT_EQ(visitor.calls, calls);
  }
}

}  // namespace
}  // namespace shardwise
