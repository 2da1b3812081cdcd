#include "planner/search/explore.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "planner/search/best_rows.h"
#include "planner/search/explore_visitors.h"
#include "planner/search/layout_grid.h"
#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/search_threads.h"
#include "planner/search/timing_jobs.h"
#include "planner/search/work_list.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr Seconds kUnknown(std::numeric_limits<double>::quiet_NaN());

/// What there is to do once a job is done.
constexpr auto kNothing = [](int, const TimingJob&) {};

/// Jobs of their tasks. \param rows  ascending
std::vector<TimingJob> timing_jobs_of(const Exploration& all, std::span<const std::uint32_t> rows) {
  std::vector<TimingJob> jobs;
  for (const std::uint32_t row : rows) {
    const std::size_t task = SearchTask::number_of(all.index[row]);
    if (jobs.empty() || jobs.back().task != task) jobs.push_back({task, 0, {}, {}});
    jobs.back().rows.push_back(row);
    jobs.back().indices.push_back(all.index[row]);
  }
  return jobs;
}

/// One exploration in work.
class Explorer {
 public:
  Explorer(const SearchRequest& request, const ExploreOptions& options, WorkList work)
      : request_(request),
        options_(options),
        work_(std::move(work)),
        threads_(thread_count(request.threads)),
        evaluators_(static_cast<std::size_t>(threads_)) {
    for (auto& of_thread : evaluators_) of_thread.resize(work_.spaces.size());
    all_.usable = usable_memory(*request.cluster, *request.job, request.most_memory);
    const EngineSpace& first = *work_.spaces.front();
    all_.held = held_fields(first.space, first.question, request.locks);
  }

  Exploration run() {
    work_.place(request_);
    list_layouts();
    if (!stopped()) price_rows();
    if (!stopped() && options_.most_timed > 0) {
      time_best_rows();
    } else if (!stopped()) {
      time_rows();
    }
    all_.stopped = stopped();
    return std::move(all_);
  }

 private:
  bool stopped() const { return request_.stop.stop_requested(); }
  Evaluator& evaluator(int thread, std::int32_t engine);
  /// Runs use(thread, task, its counts) for every task.
  template <class Use>
  void for_each_task(Use use);
  void list_layouts();
  void keep_best_of_cells();
  void resize_rows();
  void price_rows();
  void time_rows();
  /// Runs a Visitor(rest…, rows, task, indices) over each job, and then done(thread, job).
  template <class Visitor, class Done, class... Rest>
  void visit(const std::vector<TimingJob>& jobs, Done done, Rest&... rest);
  void time_best_rows();

  const SearchRequest& request_;
  const ExploreOptions& options_;
  WorkList work_;
  int threads_;
  std::vector<std::vector<std::unique_ptr<Evaluator>>> evaluators_;  // by thread and engine
  std::vector<WorkItem> items_;                                      // by task
  Exploration all_;
};

Evaluator& Explorer::evaluator(int thread, std::int32_t engine) {
  const auto e = static_cast<std::size_t>(engine);
  std::unique_ptr<Evaluator>& made = evaluators_[static_cast<std::size_t>(thread)][e];
  if (!made) {
    made = std::make_unique<Evaluator>(*request_.model, *request_.cluster, *request_.job,
                                       *work_.spaces[e]->engine, request_.memory);
  }
  return *made;
}

template <class Use>
void Explorer::for_each_task(Use use) {
  std::vector<std::vector<SearchCounts>> counts(static_cast<std::size_t>(threads_));
  for (std::vector<SearchCounts>& own : counts) {
    for (const auto& space : work_.spaces) {
      own.emplace_back().space = space->enumerator->no_counts();
    }
  }
  share_out(threads_, work_.tasks.size(), request_.stop, [&](int thread, std::size_t t) {
    const auto engine = static_cast<std::size_t>(work_.tasks[t].engine);
    use(thread, t, counts[static_cast<std::size_t>(thread)][engine]);
  });
  for (const std::vector<SearchCounts>& own : counts) {
    for (std::size_t e = 0; e < own.size(); ++e) all_.counts[e] += own[e];
  }
}

void Explorer::list_layouts() {
  for (const auto& space : work_.spaces) {
    all_.counts.emplace_back().space = space->first;
  }
  if (stopped()) return;
  items_.resize(work_.tasks.size());
  for_each_task([&](int, std::size_t t, SearchCounts& counts) {
    items_[t] = work_.item(work_.tasks[t], counts.space);
  });
  if (stopped()) return;
  std::int64_t layouts = 0;
  for (const WorkItem& item : items_) layouts += item.layouts();
  if (layouts > static_cast<std::int64_t>(options_.most_rows)) return keep_best_of_cells();
  all_.index.reserve(static_cast<std::size_t>(layouts));
  for (std::size_t t = 0; t < items_.size(); ++t) {
    for (std::int64_t i = 0; i < items_[t].layouts(); ++i) {
      all_.index.push_back(work_.tasks[t].first_index() + i);
    }
  }
}

void Explorer::keep_best_of_cells() {
  all_.thinned = true;
  std::vector<LayoutGrid> grids(static_cast<std::size_t>(threads_));
  for_each_task([&](int thread, std::size_t t, SearchCounts& counts) {
    const SearchTask& task = work_.tasks[t];
    FillsGrid visitor(grids[static_cast<std::size_t>(thread)], task, all_.usable, counts);
    evaluator(thread, task.engine).run(items_[t], visitor, request_.stop);
  });
  if (stopped()) return;
  LayoutGrid& grid = grids.front();
  for (std::size_t g = 1; g < grids.size(); ++g) grid.join(grids[g]);
  all_.index = grid.kept(options_.most_rows);
  const Result<SearchResult> answer = search(request_);
  if (!answer) return;
  for (const auto* found : {&answer->best, &answer->front, &answer->risky}) {
    for (const Candidate& each : *found) all_.index.push_back(each.index);
  }
  std::ranges::sort(all_.index);
  all_.index.erase(std::unique(all_.index.begin(), all_.index.end()), all_.index.end());
}

void Explorer::resize_rows() {
  const std::size_t rows = all_.index.size();
  all_.engine.resize(rows);
  all_.layout.resize(rows);
  for (auto* peak : {&all_.needed, &all_.point, &all_.upper, &all_.host_lacks}) peak->resize(rows);
  all_.fit.resize(rows);
  all_.worst_stage.resize(rows);
  all_.least_time.resize(rows);
  all_.step_time.assign(rows, kUnknown);
}

void Explorer::price_rows() {
  resize_rows();
  const std::span<const std::int64_t> index = all_.index;
  for_each_task([&](int thread, std::size_t t, SearchCounts& counts) {
    const SearchTask& task = work_.tasks[t];
    const auto begin = std::ranges::lower_bound(index, task.first_index());
    const auto end = std::lower_bound(begin, index.end(), task.end_index());
    const auto first = static_cast<std::size_t>(begin - index.begin());
    const TaskRows rows(task, {begin, end}, first);
    PricesRows visitor(all_, task, rows, all_.thinned ? nullptr : &counts);
    evaluator(thread, task.engine).run(items_[t], visitor, request_.stop);
  });
  if (stopped()) {
    all_.index.clear();
    return resize_rows();
  }
  if (options_.priced) options_.priced(all_);
}

void Explorer::time_rows() {
  const std::vector<TimingJob> jobs = timing_jobs(all_, work_.tasks, items_);
  if (jobs.empty()) return;
  const std::size_t batches = jobs.back().batch + 1;
  std::vector<std::atomic<std::size_t>> left(batches);  // jobs of each batch
  std::vector<Rows> rows_of(batches);
  for (const TimingJob& job : jobs) {
    ++left[job.batch];
    rows_of[job.batch].insert(rows_of[job.batch].end(), job.rows.begin(), job.rows.end());
  }
  std::vector<Seconds> times(all_.rows(), kUnknown);
  std::size_t next_batch = 0;
  const auto hand_out = [&] {
    for (; next_batch < batches && left[next_batch] == 0 && !stopped(); ++next_batch) {
      Rows& rows = rows_of[next_batch];
      for (const std::uint32_t row : rows) all_.step_time[row] = times[row];
      std::ranges::sort(rows);
      if (options_.timed) options_.timed(all_, rows);
    }
  };
  const auto done = [&](int thread, const TimingJob& job) {
    --left[job.batch];
    if (thread == 0) hand_out();
  };
  visit<TimesRows>(jobs, done, times);
  hand_out();
}

template <class Visitor, class Done, class... Rest>
void Explorer::visit(const std::vector<TimingJob>& jobs, Done done, Rest&... rest) {
  share_out(threads_, jobs.size(), request_.stop, [&](int thread, std::size_t j) {
    const TimingJob& job = jobs[j];
    const SearchTask& task = work_.tasks[job.task];
    Visitor visitor(rest..., job.rows, task, job.indices);
    evaluator(thread, task.engine).run(items_[job.task], visitor, request_.stop);
    if (!stopped()) done(thread, job);
  });
}

void Explorer::time_best_rows() {
  const std::size_t most = options_.most_timed;
  std::vector<Seconds> least = all_.least_time;
  std::vector<Seconds> times(all_.rows(), kUnknown);
  std::vector<bool> done(all_.rows());  // timed, or known to be too slow
  // Rows that fit and may take less than what keeps one out of `leading`.
  const auto may_lead = [&](const BestRows& leading) {
    Rows rows;
    for (std::uint32_t row = 0; row < all_.rows(); ++row) {
      if (all_.fit[row] != Fit::fits || done[row]) continue;
      if (least[row] <= leading.time_limit(all_.point[row])) rows.push_back(row);
    }
    return rows;
  };
  // Those that lead by a far bound have a close one first, and those that lead by a close bound are
  // timed first: then few others may be among the best.
  BestRows far(all_, most);
  for (const std::uint32_t row : may_lead(far)) far.offer(row, least[row]);
  BestRows close(all_, most);
  const auto bound = [&](const Rows& rows) {
    visit<BoundsBestRows>(timing_jobs_of(all_, rows), kNothing, close, least);
  };
  bound(far.rows());
  bound(may_lead(close));
  BestRows best(all_, most);
  for (Rows rows = close.rows(); !rows.empty() && !stopped(); rows = may_lead(best)) {
    if (rows.size() > 2 * most) {  // those whose bound is lowest keep others out
      std::ranges::nth_element(rows, rows.begin() + static_cast<std::ptrdiff_t>(2 * most), {},
                               [&](std::uint32_t row) { return std::pair(least[row], row); });
      rows.resize(2 * most);
      std::ranges::sort(rows);
    }
    visit<TimesBestRows>(timing_jobs_of(all_, rows), kNothing, best, times);
    for (const std::uint32_t row : rows) done[row] = true;
  }
  if (stopped()) return;
  const Rows kept = best.rows();
  for (const std::uint32_t row : kept) all_.step_time[row] = times[row];
  for (std::size_t row = 0; row < all_.rows(); ++row) {
    if (all_.fit[row] != Fit::fits || all_.timed(row)) continue;
    all_.least_time[row] = std::max(all_.least_time[row], best.time_limit(all_.point[row]));
  }
  if (options_.timed && !kept.empty()) options_.timed(all_, kept);
}

}  // namespace

Result<Exploration> explore(const SearchRequest& asked, const ExploreOptions& options) {
  SearchRequest request = asked;
  if (!request.memory) request.memory = std::make_shared<SearchMemory>();
  SHARDWISE_CHECK(request.job->global_batch_size > 0, "layouts are compared by steps of one batch");
  Result<WorkList> work = work_list(request);
  if (!work) return work.problems();
  return Explorer(request, options, *std::move(work)).run();
}

}  // namespace shardwise
