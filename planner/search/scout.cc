#include "planner/search/scout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "planner/search/explore_visitors.h"
#include "planner/search/finder.h"
#include "planner/search/row_ranking.h"
#include "planner/search/search_threads.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostListed = std::size_t{1} << 20;  // layouts of a thread, 32 bytes each

/// Lists the layouts of a thread's tasks, and ranks those that fit by bounds on their times.
class ListsLayouts final : public LayoutVisitor {
 public:
  ListsLayouts(const SearchRequest& request, Bytes usable) : usable_(usable), leading_(request) {}

  void begin(const SearchTask& task, PricedTask& priced) {
    candidate_.engine = task.engine;
    first_index_ = task.first_index();
    task_ = &priced;
  }
  Asks asks() const override { return Asks::close_bounds; }
  bool sees_all() const override { return false; }
  bool may_matter(const MemoryPrice& least, std::int64_t /*first*/, std::int64_t orders) override {
    if (fit_of(least, usable_) != Fit::does_not_fit) return true;
    task_->counts.does_not_fit += orders;
    return false;
  }
  Seconds memory(const Layout& layout, const MemoryPrice& price, Seconds,
                 std::int64_t orders) override {
    const Fit fit = count(task_->counts, price, usable_, orders);
    if (fit != Fit::fits) return Seconds(-1);
    if (complete()) return Seconds(1e300);
    return leading_.limit(price.point, candidate_.engine, layout);
  }
  void bound(const Layout& layout, const MemoryPrice& price, Seconds least,
             std::int64_t index) override {
    list({index, price.point, least, 0}, layout);
    candidate_.layout = layout;
    candidate_.cost = {price, least};
    candidate_.index = first_index_ + index;
    leading_.offer(candidate_);
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

  const Bound& leading() const { return leading_; }
  bool complete() const { return listed_ <= kMostListed; }

 private:
  void list(PricedLayout layout, const Layout& of) {
    if (++listed_ > kMostListed) return;
    std::vector<Layout>& degrees = task_->degrees;
    if (degrees.empty() || degrees_of(degrees.back()) != degrees_of(of)) degrees.push_back(of);
    layout.like = static_cast<std::uint32_t>(degrees.size() - 1);
    task_->fitting.push_back(layout);
    task_->least = std::min(task_->least, layout.least);
  }

  Bytes usable_;
  Bound leading_;
  Candidate candidate_;
  std::int64_t first_index_ = 0;
  PricedTask* task_ = nullptr;
  std::size_t listed_ = 0;
};

/// Layouts of one task, and which of them their bound ranks first.
struct ScoutedTask {
  const SearchTask* task = nullptr;
  Seconds least;
  std::vector<std::int64_t> indices;  // of the item, ascending
};

/// Times layouts of a task.
class TimesScouted final : public LayoutVisitor {
 public:
  TimesScouted(const ScoutedTask& of, std::vector<Candidate>& timed) : of_(of), timed_(timed) {}

  bool wants(std::int64_t first, std::int64_t end) override {
    const auto next = std::ranges::lower_bound(of_.indices, first);
    return next != of_.indices.end() && *next < end;
  }
  Seconds memory(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {
    return Seconds(1e300);
  }
  void time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
            std::int64_t index) override {
    timed_.push_back(
        {of_.task->engine, layout, {price, step_time}, of_.task->first_index() + index});
  }

 private:
  const ScoutedTask& of_;
  std::vector<Candidate>& timed_;
};

std::vector<ScoutedTask> by_task(const WorkList& work, std::vector<Candidate> leading) {
  std::ranges::sort(leading, {}, &Candidate::index);
  std::vector<ScoutedTask> tasks;
  for (const Candidate& each : leading) {
    const SearchTask& task = work.tasks[SearchTask::number_of(each.index)];
    if (tasks.empty() || tasks.back().task != &task) {
      tasks.push_back({&task, each.cost.step_time, {}});
    }
    tasks.back().least = std::min(tasks.back().least, each.cost.step_time);
    tasks.back().indices.push_back(each.index - task.first_index());
  }
  std::ranges::stable_sort(tasks, {}, &ScoutedTask::least);
  return tasks;
}

/// What each of the threads makes, one after the other.
template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& parts) {
  std::vector<T> all;
  for (const std::vector<T>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

Scouted scouted(const SearchRequest& request, const WorkList& work, Bytes usable,
                const EvaluatorOf& evaluator) {
  const int threads = thread_count(request.threads);
  Scouted scouted;
  scouted.tasks.resize(work.tasks.size());
  std::vector<ListsLayouts> lists(static_cast<std::size_t>(threads), ListsLayouts(request, usable));
  share_out(threads, work.tasks.size(), request.stop, [&](int thread, std::size_t t) {
    ListsLayouts& list = lists[static_cast<std::size_t>(thread)];
    const SearchTask& task = work.tasks[t];
    PricedTask& priced = scouted.tasks[t];
    priced.counts.space = work.space(task).enumerator->no_counts();
    const WorkItem item = work.item(task, priced.counts.space);
    list.begin(task, priced);
    evaluator(thread, task.engine).run(item, list, request.stop);
  });
  Bound leading(request);
  bool complete = true;
  for (const ListsLayouts& list : lists) {
    leading.offer(list.leading().best.entries());
    leading.offer(list.leading().front.entries());
    complete = complete && list.complete();
  }
  if (!complete || !leading.fits()) scouted.tasks.clear();
  std::vector<Candidate> all(leading.best.entries().begin(), leading.best.entries().end());
  all.insert(all.end(), leading.front.entries().begin(), leading.front.entries().end());
  const std::vector<ScoutedTask> tasks = by_task(work, std::move(all));

  std::vector<std::vector<Candidate>> timed(static_cast<std::size_t>(threads));
  share_out(threads, tasks.size(), request.stop, [&](int thread, std::size_t t) {
    const SearchTask& task = *tasks[t].task;
    SpaceCounts counts = work.space(task).enumerator->no_counts();
    TimesScouted times(tasks[t], timed[static_cast<std::size_t>(thread)]);
    evaluator(thread, task.engine).run(work.item(task, counts), times, request.stop);
  });
  scouted.leading = joined(timed);
  return scouted;
}

}  // namespace shardwise
