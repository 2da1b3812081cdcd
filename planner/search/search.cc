#include "planner/search/search.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "planner/cost/loss_rows.h"
#include "planner/engines/executed.h"
#include "planner/search/evaluator.h"
#include "planner/spec/check.h"

namespace shardwise {
namespace {

/// Everything about one engine's share of a search.
struct EngineSpace {
  EngineSpace(const SearchRequest& request, const EngineProfile& profile)
      : engine(&profile),
        question(layout_question(*request.model, *request.cluster, *request.job, profile)),
        space(search_space(question, request.breadth)) {}

  const EngineProfile* engine;
  LayoutQuestion question;
  SearchSpace space;
  std::unique_ptr<Enumerator> enumerator;
  std::vector<DegreeGroup> groups;
  SpaceCounts first;  // counted with the groups
};

/// One micro-batch size of one group of one engine.
struct Task {
  std::int32_t engine = 0;
  std::int32_t group = 0;
  std::int32_t micro_batch_size = 0;
  std::int64_t number = 0;  // in the enumeration
  std::int32_t cp = 1;
};

/// What a smaller space has already found: an answer never becomes worse than that.
struct Bound {
  explicit Bound(const SearchRequest& request)
      : best(request.objective, request.top), has_front(request.front) {}

  /// A layout that fits.
  void offer(const Candidate& candidate) {
    best.offer(candidate);
    if (has_front) front.offer(candidate);
  }
  /// From this time on, a layout of this memory is in no answer.
  Seconds limit(Bytes memory, std::int32_t engine, const Layout& layout) const {
    const Seconds of_best = best.time_limit(memory, engine, layout);
    return has_front ? std::max(of_best, front.time_limit(memory)) : of_best;
  }
  bool fits() const { return !best.entries().empty() || !front.entries().empty(); }

  BestLayouts best;
  ParetoFront front;
  bool has_front;
};

/// What all threads have found so far. It spares each of them work and changes no answer.
class Found {
 public:
  Found(const SearchRequest& request, const Bound* bound)
      : all_(bound != nullptr ? *bound : Bound(request)) {}
  /// Adds what a thread has found. \returns all of it
  Bound join(const Bound& more) {
    const std::lock_guard lock(mutex_);
    for (const Candidate& each : more.best.entries()) all_.best.offer(each);
    for (const Candidate& each : more.front.entries()) all_.front.offer(each);
    return all_;
  }

 private:
  std::mutex mutex_;
  Bound all_;
};

/// What one thread has found.
class Finder final : public LayoutVisitor {
 public:
  Finder(const SearchRequest& request, Bytes usable, const Bound* bound = nullptr)
      : usable_(usable),
        bound_(bound),
        fitting(request),
        risky(request.objective, std::min<std::size_t>(request.top, 1)),
        counts(request.engines.size()) {
    if (bound != nullptr) others_ = *bound;
  }

  void begin(std::int32_t engine, std::int64_t task) {
    candidate_.engine = engine;
    first_index_ = task << kIndexBits;
  }
  /// Exchanges what was found with the other threads, the more seldom the more it is.
  void meet(Found& others) {
    constexpr std::size_t kOften = 64;  // layouts
    if (++alone_ <= fitting.best.entries().size() / kOften) return;
    alone_ = 0;
    others_ = others.join(fitting);
  }

  Seconds memory(const Layout& layout, const MemoryPrice& price, Seconds floor,
                 std::int64_t orders) override {
    const auto limit = [&](const Bound& known) {
      return known.limit(price.point, candidate_.engine, layout);
    };
    SearchCounts& count = counts[static_cast<std::size_t>(candidate_.engine)];
    evaluated += orders;
    if (price.upper <= usable_) {
      const bool too_slow = bound_ != nullptr && floor > limit(*bound_);
      (too_slow ? count.too_slow : count.ranked) += orders;
      if (too_slow) return kNever;
      const Seconds own = limit(fitting);
      return others_ ? std::min(own, limit(*others_)) : own;
    }
    const bool risks = price.point <= usable_;
    (risks ? count.at_risk : count.does_not_fit) += orders;
    if (fits()) return kNever;
    // Whether it may be the smallest of all, and up to which time.
    const bool is_smaller = !smallest || price.point < smallest->cost.point;
    const bool as_small = smallest && price.point == smallest->cost.point;
    const Seconds smallest_limit = is_smaller ? kForever
                                   : as_small ? smallest->cost.step_time
                                              : kNever;
    return std::max(smallest_limit, risks ? risky.time_limit(price.point) : kNever);
  }

  void time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
            std::int64_t index) override {
    candidate_.layout = layout;
    candidate_.cost = {price.point, price.upper, step_time};
    candidate_.index = first_index_ + index;
    offer(candidate_);
  }

  void offer(const Candidate& found) {
    if (found.cost.upper <= usable_) {
      fitting.offer(found);
      return;
    }
    if (!smallest || ranks_before(Objective::memory, found, *smallest)) smallest = found;
    if (found.cost.point <= usable_) risky.offer(found);
  }

  /// Whether any layout is known that fits: then nobody asks for those that do not.
  bool fits() const { return fitting.fits() || (others_ && others_->fits()); }

 private:
  static constexpr int kIndexBits = 38;  // layouts of a task
  static constexpr Seconds kForever = Seconds(1e300);
  static constexpr Seconds kNever = Seconds(-1);

  Bytes usable_;
  const Bound* bound_;
  std::optional<Bound> others_;
  Candidate candidate_;
  std::int64_t first_index_ = 0;
  std::size_t alone_ = 0;  // tasks since it met the others

 public:
  Bound fitting;
  // While none is known that fits.
  BestLayouts risky;
  std::optional<Candidate> smallest;
  std::vector<SearchCounts> counts;
  std::int64_t evaluated = 0;
};

/// Runs work(0) … work(count - 1) on `threads` threads, the calling one among them.
template <class Work>
void in_parallel(int threads, Work work) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
}

int thread_count(const SearchRequest& request) {
  if (request.threads > 0) return request.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Counts are of 64 bits.
constexpr double kMostEnumerated = 9e18;
Diagnostic too_large() {
  return {"command line",
          0,
          0,
          "--open",
          "the space has more than 9e18 layouts, too many to count",
          "open fewer fields, lock one, or leave out --space full"};
}

/// Narrows or widens a space as the request says. \returns what is wrong with it
Diagnostics shape(EngineSpace& each, const SearchRequest& request) {
  Diagnostics problems;
  for (const std::string& key : request.opened) {
    const std::string problem = open(each.space, each.question, key);
    if (!problem.empty()) problems.push_back({"command line", 0, 0, "--open", problem, ""});
  }
  for (const auto& [key, value] : request.locks) {
    const std::string problem = lock(each.space, key, value);
    if (!problem.empty()) problems.push_back({"command line", 0, 0, "--lock", problem, ""});
  }
  if (!request.executed) return problems;
  for (const ExecutedField& field : executed_fields_besides(request.locks, request.opened)) {
    lock(each.space, std::string(field.key), std::string(field.value));
  }
  return problems;
}

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

/// What was found, as the answer of a search.
void answer(const Finder& all, SearchResult& result) {
  result.best.assign(all.fitting.best.entries().begin(), all.fitting.best.entries().end());
  result.front.assign(all.fitting.front.entries().begin(), all.fitting.front.entries().end());
  result.risky.clear();
  result.smallest.reset();
  if (all.fits()) return;
  result.risky.assign(all.risky.entries().begin(), all.risky.entries().end());
  result.smallest = all.smallest;
}

/// Has every layout of an answer cost what it does with the rows of its loss decided.
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
    for (const Candidate& each : entries) offer(each);
  }
  if (result.smallest) offer(*result.smallest);
  answer(all, result);
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

Result<SearchResult> search(const SearchRequest& request) {
  Result<SearchResult> found = search_as_priced(request);
  if (found) decide(request, *found);
  return found;
}

namespace {

Result<SearchResult> search_as_priced(const SearchRequest& request) {
  SHARDWISE_CHECK(request.job->global_batch_size > 0, "a search compares steps of one batch");
  std::vector<std::unique_ptr<EngineSpace>> spaces;
  std::vector<Task> tasks;
  std::vector<DegreeGroup*> groups;
  for (const EngineProfile* engine : request.engines) {
    EngineSpace& each = *spaces.emplace_back(std::make_unique<EngineSpace>(request, *engine));
    const Diagnostics problems = shape(each, request);
    if (!problems.empty()) return problems;
    if (each.space.product() > kMostEnumerated) return too_large();
    each.enumerator = std::make_unique<Enumerator>(each.question, each.space);
    each.first = each.enumerator->no_counts();
    each.groups = each.enumerator->degree_groups(each.first);
    for (std::size_t g = 0; g < each.groups.size(); ++g) {
      groups.push_back(&each.groups[g]);
      for (const std::int32_t size : each.enumerator->micro_batch_sizes()) {
        tasks.push_back({static_cast<std::int32_t>(spaces.size() - 1), static_cast<std::int32_t>(g),
                         size, static_cast<std::int64_t>(tasks.size()), each.groups[g].base.cp});
      }
    }
  }
  // The fewer ranks share a sequence, the less a step takes for its memory: what is found early
  // bounds the rest. No answer depends on the order.
  std::ranges::stable_sort(tasks, {}, &Task::cp);

  const int threads = thread_count(request);
  const Bytes usable = usable_memory(*request.cluster, *request.job, request.most_memory);
  const std::unique_ptr<Bound> bound = usual_answer(request);
  std::vector<std::unique_ptr<Finder>> finders;
  for (int t = 0; t < threads; ++t) {
    finders.push_back(std::make_unique<Finder>(request, usable, bound.get()));
    for (std::size_t e = 0; e < spaces.size(); ++e) {
      finders.back()->counts[e].space = spaces[e]->enumerator->no_counts();
    }
  }

  std::atomic<std::size_t> next_group = 0;
  std::vector<std::int32_t> engine_of_group;
  for (std::size_t e = 0; e < spaces.size(); ++e) {
    engine_of_group.insert(engine_of_group.end(), spaces[e]->groups.size(),
                           static_cast<std::int32_t>(e));
  }
  in_parallel(threads, [&](int) {
    ShapeCache shapes(*request.cluster);
    for (std::size_t g = next_group++; g < groups.size(); g = next_group++) {
      spaces[static_cast<std::size_t>(engine_of_group[g])]->enumerator->place(*groups[g], shapes);
    }
  });

  Found found(request, bound.get());
  std::atomic<std::size_t> next_task = 0;
  std::atomic<std::int64_t> evaluated = 0;
  std::atomic<std::int64_t> done = 0;
  in_parallel(threads, [&](int thread) {
    Finder& finder = *finders[static_cast<std::size_t>(thread)];
    std::vector<std::unique_ptr<Evaluator>> evaluators(spaces.size());
    for (std::size_t t = next_task++; t < tasks.size(); t = next_task++) {
      const Task& task = tasks[t];
      const auto e = static_cast<std::size_t>(task.engine);
      if (evaluators[e] == nullptr) {
        evaluators[e] = std::make_unique<Evaluator>(*request.model, *request.cluster, *request.job,
                                                    *spaces[e]->engine);
      }
      const WorkItem item =
          spaces[e]->enumerator->work_item(spaces[e]->groups[static_cast<std::size_t>(task.group)],
                                           task.micro_batch_size, finder.counts[e].space);
      const std::int64_t before = finder.evaluated;
      finder.begin(task.engine, task.number);
      evaluators[e]->run(item, finder);
      evaluated += finder.evaluated - before;
      ++done;
      if (threads > 1) finder.meet(found);
      if (thread == 0 && request.progress) {
        request.progress({evaluated, done, static_cast<std::int64_t>(tasks.size())});
      }
    }
  });

  SearchResult result;
  result.usable = usable;
  result.held = held_fields(spaces.front()->space, spaces.front()->question, request.locks);
  Finder all(request, usable);
  for (std::size_t e = 0; e < spaces.size(); ++e) {
    SearchCounts& counts = result.counts.emplace_back();
    counts.space = spaces[e]->first;
    for (const auto& finder : finders) counts += finder->counts[e];
  }
  for (const auto& finder : finders) {
    for (const auto& entries : {finder->fitting.best.entries(), finder->fitting.front.entries(),
                                finder->risky.entries()}) {
      for (const Candidate& each : entries) all.offer(each);
    }
    const std::optional<Candidate>& smallest = finder->smallest;
    if (smallest) all.offer(*smallest);
  }
  answer(all, result);
  return result;
}

}  // namespace

}  // namespace shardwise
