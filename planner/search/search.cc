#include "planner/search/search.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/estimate/loss_rows.h"
#include "planner/search/best_first.h"
#include "planner/search/finder.h"
#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/scout.h"
#include "planner/search/search_threads.h"
#include "planner/search/work_list.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

Result<SearchResult> search_as_priced(const SearchRequest& request);

/// The answer of the usual space, which is part of the space of `request`; nothing when it is the
/// whole of it, or when nothing in it fits.
std::unique_ptr<Bound> usual_answer(const SearchRequest& request) {
  if (!request.bounded) return nullptr;
  if (request.breadth == Breadth::usual && request.opened.empty()) return nullptr;
  SearchRequest usual = request;
  usual.breadth = Breadth::usual;
  usual.opened.clear();
  usual.progress = nullptr;
  const Result<SearchResult> found = search_as_priced(usual);
  if (!found || found->best.empty()) return nullptr;
  auto bound = std::make_unique<Bound>(request);
  for (const Candidate& each : found->best) bound->best.offer(each);
  for (const Candidate& each : found->front) bound->front.offer(each);
  return bound;
}

/// Has every layout of an answer cost what it does with the rows of its loss decided. Where it is
/// stopped the answer stays as it was priced.
void decide(const SearchRequest& request, SearchResult& result) {
  if (request.job->loss_chunk_rows != kOpenLossRows) return;
  Finder all(request, result.usable);
  const auto offer = [&](Candidate candidate) {
    const EngineProfile& engine = *request.engines[static_cast<std::size_t>(candidate.engine)];
    const JobSpec job = decided_job(*request.model, *request.cluster, *request.job, engine,
                                    candidate.layout, result.usable);
    if (job.loss_chunk_rows != kUsualLossRows) {
      candidate.cost = evaluate(*request.model, *request.cluster, job, engine, candidate.layout);
    }
    all.offer(candidate);
  };
  for (const auto& entries : {result.best, result.front, result.risky}) {
    for (const Candidate& each : entries) {
      result.stopped = result.stopped || request.stop.stop_requested();
      if (result.stopped) return;
      offer(each);
    }
  }
  if (result.smallest) offer(*result.smallest);
  all.answer(result);
}

/// Evaluators of each thread, made when they are first needed.
class Evaluators {
 public:
  Evaluators(const SearchRequest& request, const WorkList& work)
      : request_(request),
        work_(work),
        made_(static_cast<std::size_t>(thread_count(request.threads))) {
    for (auto& of_thread : made_) of_thread.resize(work.spaces.size());
  }
  Evaluator& of(int thread, std::int32_t engine) {
    const auto e = static_cast<std::size_t>(engine);
    std::unique_ptr<Evaluator>& made = made_[static_cast<std::size_t>(thread)][e];
    if (!made) {
      made = std::make_unique<Evaluator>(*request_.model, *request_.cluster, *request_.job,
                                         *work_.spaces[e]->engine, request_.memory);
    }
    return *made;
  }

 private:
  const SearchRequest& request_;
  const WorkList& work_;
  std::vector<std::vector<std::unique_ptr<Evaluator>>> made_;  // by thread and engine
};

/// Looks at every layout of the tasks. \returns what each thread has found
std::vector<std::unique_ptr<Finder>> find(const SearchRequest& request, const WorkList& work,
                                          Bytes usable, const Bound* bound) {
  std::vector<SearchTask> tasks = work.tasks;
  // The fewer ranks share a sequence, the less a step takes for its memory: what is found early
  // bounds the rest. No answer depends on the order.
  std::ranges::stable_sort(tasks, {}, &SearchTask::cp);
  const int threads = thread_count(request.threads);
  Evaluators evaluators(request, work);
  Bound known = bound != nullptr ? *bound : Bound(request);
  Scouted scout;
  const EvaluatorOf evaluator = [&](int thread, std::int32_t engine) -> Evaluator& {
    return evaluators.of(thread, engine);
  };
  if (!request.counted) return found_best_first(request, work, usable, evaluator);
  if (bound == nullptr && request.bounded) {
    scout = scouted(request, work, usable, evaluator);
    known.offer(scout.leading);
  }
  const auto priced = [&](const SearchTask& task) {
    return scout.tasks.empty() ? nullptr : &scout.tasks[static_cast<std::size_t>(task.number)];
  };
  if (!scout.tasks.empty()) {
    std::ranges::stable_sort(tasks, {},
                             [&](const SearchTask& each) { return priced(each)->least; });
  }
  std::vector<std::unique_ptr<Finder>> finders;
  for (int t = 0; t < threads; ++t) {
    finders.push_back(std::make_unique<Finder>(request, usable, bound, &known));
    for (std::size_t e = 0; e < work.spaces.size(); ++e) {
      finders.back()->counts[e].space = work.spaces[e]->enumerator->no_counts();
    }
  }
  Found found(std::move(known));
  std::atomic<std::int64_t> evaluated = 0;
  std::atomic<std::int64_t> done = 0;
  const auto items = static_cast<std::int64_t>(tasks.size());
  std::int64_t said = 0;  // of `done`
  const auto say = [&](const Finder& finder) {
    said = done;
    request.progress({evaluated, said, items, finder.best_of_all()});
  };
  share_out(threads, tasks.size(), request.stop, [&](int thread, std::size_t t) {
    Finder& finder = *finders[static_cast<std::size_t>(thread)];
    const SearchTask& task = tasks[t];
    const auto e = static_cast<std::size_t>(task.engine);
    const std::int64_t before = finder.evaluated;
    const PricedTask* const of_task = priced(task);
    finder.begin(task, of_task);
    if (of_task == nullptr || finder.wants_any()) {
      SpaceCounts counted = work.spaces[e]->enumerator->no_counts();
      SpaceCounts& counts = of_task == nullptr ? finder.counts[e].space : counted;
      evaluators.of(thread, task.engine).run(work.item(task, counts), finder, request.stop);
    }
    evaluated += finder.evaluated - before;
    ++done;
    if (threads > 1 || request.progress) finder.meet(found);
    if (thread == 0 && request.progress) say(finder);
  });
  // Other threads may have taken the last tasks, or all of them before this one came to any.
  if (request.progress && said < done) {
    for (auto each = finders.rbegin(); each != finders.rend(); ++each) (*each)->meet(found);
    say(*finders.front());
  }
  return finders;
}

bool can_be_uncounted(const SearchRequest& request) {
  return request.engines.size() == 1 && request.breadth == Breadth::usual &&
         request.opened.empty() && request.locks.empty() && !request.front &&
         request.objective != Objective::memory;
}

Result<SearchResult> search_as_priced(const SearchRequest& request) {
  SHARDWISE_CHECK(request.job->global_batch_size > 0, "a search compares steps of one batch");
  SHARDWISE_CHECK(request.counted || can_be_uncounted(request), "layouts that must be counted");
  Result<WorkList> work = work_list(request);
  if (!work) return work.problems();
  SearchResult result;
  result.usable = usable_memory(*request.cluster, *request.job, request.most_memory);
  const EngineSpace& first = *work->spaces.front();
  result.held = held_fields(first.space, first.question, request.locks);
  const std::unique_ptr<Bound> bound = usual_answer(request);
  work->place(request);
  const auto finders = find(request, *work, result.usable, bound.get());

  Finder all(request, result.usable);
  for (const auto& finder : finders) all.offer(*finder);
  for (std::size_t e = 0; e < work->spaces.size(); ++e) {
    SearchCounts& counts = result.counts.emplace_back();
    counts.space = work->spaces[e]->first;
    for (const auto& finder : finders) counts += finder->counts[e];
  }
  result.stopped = request.stop.stop_requested();
  if (result.stopped && bound) {
    all.offer(bound->best.entries());
    all.offer(bound->front.entries());
  }
  all.answer(result);
  return result;
}

}  // namespace

SearchCounts& SearchCounts::operator+=(const SearchCounts& other) {
  space += other.space;
  does_not_fit += other.does_not_fit;
  at_risk += other.at_risk;
  too_slow += other.too_slow;
  ranked += other.ranked;
  return *this;
}

Bytes usable_memory(const ClusterSpec& cluster, const JobSpec& job, Bytes most_memory) {
  const Bytes usable(static_cast<std::int64_t>(static_cast<double>(cluster.gpu.hbm_bytes.value()) *
                                               (1 - job.held_back)));
  return most_memory > Bytes(0) ? std::min(usable, most_memory) : usable;
}

Result<SearchResult> search(const SearchRequest& asked) {
  SearchRequest request = asked;
  // Its threads tell one another at least.
  if (!request.memory) request.memory = std::make_shared<SearchMemory>();
  Result<SearchResult> found = search_as_priced(request);
  if (found) decide(request, *found);
  return found;
}

}  // namespace shardwise
