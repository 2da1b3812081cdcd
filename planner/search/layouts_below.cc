#include "planner/search/layouts_below.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/search.h"
#include "planner/search/search_threads.h"
#include "planner/search/work_list.h"

namespace shardwise {
namespace {

void sort_by_bound(std::vector<Candidate>& layouts) {
  std::ranges::sort(layouts, {}, [](const Candidate& each) {
    return std::tuple(each.cost.step_time, each.index);
  });
}

/// Keeps the layouts of a thread's tasks with the lowest bounds.
class KeepsLowest final : public LayoutVisitor {
 public:
  KeepsLowest(Bytes usable, Seconds limit, std::size_t most)
      : usable_(usable), limit_(limit), most_(most) {}

  void begin(const SearchTask& task) {
    engine_ = task.engine;
    first_index_ = task.first_index();
  }
  Asks asks() const override { return Asks::chains; }
  bool sees_all() const override { return false; }
  Seconds limit() override { return limit_; }
  bool may_matter(const MemoryPrice& least, std::int64_t /*first*/,
                  std::int64_t /*orders*/) override {
    return fit_of(least, usable_) == Fit::fits;
  }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t) override {
    return fit_of(price, usable_) == Fit::fits ? limit_ : Seconds(-1);
  }
  void bound(const Layout& layout, const MemoryPrice& price, Seconds least,
             std::int64_t index) override {
    if (least >= limit_) return;
    kept_.push_back({engine_, layout, {price, least}, first_index_ + index});
    if (kept_.size() > 2 * most_ + 1) cut();
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

  /// One more than `most`, so that the least bound of the others is known. They are not sorted.
  std::vector<Candidate>& kept() { return kept_; }

 private:
  void cut() {
    sort_by_bound(kept_);
    kept_.resize(most_ + 1);
    limit_ = std::min(limit_, kept_.back().cost.step_time * (1 + 1e-12));  // ties stay
  }

  Bytes usable_;
  Seconds limit_;
  std::size_t most_;
  std::int32_t engine_ = 0;
  std::int64_t first_index_ = 0;
  std::vector<Candidate> kept_;
};

}  // namespace

Result<LayoutsBelow> layouts_below(const SearchRequest& request, Seconds limit, std::size_t most) {
  Result<WorkList> work = work_list(request);
  if (!work) return work.problems();
  const auto memory = request.memory ? request.memory : std::make_shared<SearchMemory>();
  SearchRequest placed = request;
  placed.memory = memory;
  work->place(placed);
  const Bytes usable = usable_memory(*request.cluster, *request.job, request.most_memory);
  const auto threads = static_cast<std::size_t>(thread_count(request.threads));
  std::vector<KeepsLowest> lists(threads, KeepsLowest(usable, limit, most));
  std::vector<std::vector<std::unique_ptr<Evaluator>>> evaluators(threads);
  for (auto& of_thread : evaluators) of_thread.resize(request.engines.size());
  share_out(
      static_cast<int>(threads), work->tasks.size(), request.stop, [&](int thread, std::size_t t) {
        const SearchTask& task = work->tasks[t];
        const auto at = static_cast<std::size_t>(thread);
        const auto engine = static_cast<std::size_t>(task.engine);
        std::unique_ptr<Evaluator>& evaluator = evaluators[at][engine];
        if (!evaluator) {
          evaluator = std::make_unique<Evaluator>(*request.model, *request.cluster, *request.job,
                                                  *request.engines[engine], memory);
        }
        SpaceCounts counts = work->space(task).enumerator->no_counts();
        lists[at].begin(task);
        evaluator->run(work->item(task, counts), lists[at], request.stop);
      });
  LayoutsBelow below;
  below.others = limit;
  for (KeepsLowest& list : lists) {
    below.lowest.insert(below.lowest.end(), list.kept().begin(), list.kept().end());
  }
  sort_by_bound(below.lowest);
  if (below.lowest.size() > most) {
    below.others = below.lowest[most].cost.step_time;
    below.lowest.resize(most);
  }
  return below;
}

}  // namespace shardwise
