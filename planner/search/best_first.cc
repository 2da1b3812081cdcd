#include "planner/search/best_first.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/search_threads.h"

namespace shardwise {
namespace {

/// A layout, and what it takes at least: seconds of one that fits, bytes of another.
template <class Least>
struct Bounded {
  std::int64_t index = 0;  // Candidate::index
  Least least;
};

/// What all threads know while layouts are listed.
class Known {
 public:
  /// From this time on, no layout is in the answer.
  Seconds limit() const { return Seconds(limit_.load(std::memory_order_relaxed)); }
  bool limits() const { return limit() < Seconds(std::numeric_limits<double>::infinity()); }
  void lower(Seconds limit) {
    const std::lock_guard lock(mutex_);
    limit_ = std::min(limit_.load(), limit.value());
  }
  bool fits() const { return fits_.load(std::memory_order_relaxed); }
  void found_fitting() { fits_.store(true, std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::atomic<double> limit_ = std::numeric_limits<double>::infinity();
  std::atomic<bool> fits_ = false;
};

/// Finds the least floor of a task's layouts.
class LeastFloor final : public LayoutVisitor {
 public:
  Asks asks() const override { return Asks::floors; }
  bool sees_all() const override { return false; }
  void floor(Seconds least) override { least_ = std::min(least_, least); }
  Seconds memory(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {
    return Seconds(-1);
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}
  Seconds least() const { return least_; }

 private:
  Seconds least_ = Seconds(1e300);
};

/// Lists the layouts of tasks that fit, with bounds on their times; while none is known that fits,
/// the others, with bounds on their memory.
class ListsBounds final : public LayoutVisitor {
 public:
  ListsBounds(Known& known, Bytes usable) : known_(known), usable_(usable) {}

  /// \param fits  of the task's layouts
  void begin(const SearchTask& task, std::vector<KnownFits::Fits>& fits) {
    first_index_ = task.first_index();
    fits_ = &fits;
  }
  bool sees_all() const override { return false; }
  Asks asks() const override { return Asks::close_bounds; }
  Seconds limit() override { return known_.limit(); }
  KnownFits::Fits known_fit(std::int64_t first) override {
    first_ = first;
    const KnownFits::Fits known = fit(first);
    // Before any is known that fits, others are listed with their memory.
    return known == KnownFits::Fits::no && !known_.fits() ? KnownFits::Fits::unknown : known;
  }
  bool may_matter(const MemoryPrice& least, std::int64_t /*first*/, std::int64_t orders) override {
    if (fit_of(least, usable_) == Fit::fits) return true;
    fit(first_) = KnownFits::Fits::no;
    list_others(least, orders);
    return false;
  }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t orders) override {
    if (fit_of(price, usable_) == Fit::fits) {
      fit(first_) = KnownFits::Fits::yes;
      return known_.limit();
    }
    fit(first_) = KnownFits::Fits::no;
    list_others(price, orders);
    return Seconds(-1);
  }
  void bound(const Layout&, const MemoryPrice&, Seconds least, std::int64_t index) override {
    if (!known_.fits()) known_.found_fitting();
    fitting.push_back({first_index_ + index, least});
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

  std::vector<Bounded<Seconds>> fitting;
  std::vector<Bounded<Bytes>> others;

 private:
  KnownFits::Fits& fit(std::int64_t first) { return (*fits_)[static_cast<std::size_t>(first)]; }
  void list_others(const MemoryPrice& price, std::int64_t orders) {
    if (known_.fits()) return;
    // All that may be at risk come before those that are not.
    const bool fits = fit_of(price, usable_) != Fit::does_not_fit;
    const Bytes least = fits ? std::min(price.point, usable_) : price.point;
    for (std::int64_t o = 0; o < orders; ++o) others.push_back({first_index_ + first_ + o, least});
  }

  Known& known_;
  Bytes usable_;
  std::int64_t first_index_ = 0;
  std::int64_t first_ = 0;  // order of the layout that is asked about
  std::vector<KnownFits::Fits>* fits_ = nullptr;
};

/// Shows a finder some layouts of a task.
class ShowsSome final : public LayoutVisitor {
 public:
  /// \param indices  ascending
  ShowsSome(Finder& finder, const SearchTask& task, std::span<const std::int64_t> indices)
      : finder_(finder), first_index_(task.first_index()), indices_(indices) {}

  bool wants(std::int64_t first, std::int64_t end) override {
    const auto next = std::ranges::lower_bound(indices_, first_index_ + first);
    return next != indices_.end() && *next < first_index_ + end;
  }
  Seconds memory(const Layout& layout, const MemoryPrice& price, Seconds floor,
                 std::int64_t orders) override {
    return finder_.memory(layout, price, floor, orders);
  }
  void time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
            std::int64_t index) override {
    finder_.time(layout, price, step_time, index);
  }

 private:
  Finder& finder_;
  std::int64_t first_index_;
  std::span<const std::int64_t> indices_;
};

class BestFirst {
 public:
  BestFirst(const SearchRequest& request, const WorkList& work, Bytes usable,
            const EvaluatorOf& evaluator)
      : request_(request),
        work_(work),
        evaluator_(evaluator),
        threads_(thread_count(request.threads)),
        items_(work.tasks.size()),
        fits_(request.memory->borrow_fits(request)),
        lists_(static_cast<std::size_t>(threads_), ListsBounds(known_, usable)),
        found_(Bound(request)) {
    fits_->resize(items_.size());
    for (int t = 0; t < threads_; ++t) {
      finders_.push_back(std::make_unique<Finder>(request, usable));
      for (std::size_t e = 0; e < work.spaces.size(); ++e) {
        finders_.back()->counts[e].space = work.spaces[e]->enumerator->no_counts();
      }
    }
  }

  std::vector<std::unique_ptr<Finder>> run() {
    enumerate();
    list(in_order());
    request_.memory->give_back(std::move(fits_));
    known_.fits() ? time_fitting() : find_smallest();
    return std::move(finders_);
  }

 private:
  const SearchTask& task_of(std::int64_t index) const {
    return work_.tasks[SearchTask::number_of(index)];
  }
  const WorkItem& item(const SearchTask& task) const {
    return items_[static_cast<std::size_t>(task.number)];
  }
  template <class Use>
  void for_each_task(std::size_t count, Use use) {
    share_out(threads_, count, request_.stop, use);
  }
  void enumerate();
  std::vector<std::size_t> in_order();
  void list(const std::vector<std::size_t>& order);
  /// Times layouts on one thread.
  void show(int thread, const SearchTask& task, std::span<const std::int64_t> indices);
  /// Times layouts, or finds their memory first: the tasks of the first ones come first.
  template <class Least>
  void show(std::span<const Bounded<Least>> layouts);
  void time_fitting();
  void find_smallest();

  const SearchRequest& request_;
  const WorkList& work_;
  const EvaluatorOf& evaluator_;
  int threads_;
  std::vector<WorkItem> items_;  // by task
  Known known_;
  std::unique_ptr<KnownFits> fits_;               // until all are listed
  std::vector<ListsBounds> lists_;                // by thread
  std::vector<std::unique_ptr<Finder>> finders_;  // by thread
  Found found_;
};

void BestFirst::enumerate() {
  for_each_task(items_.size(), [&](int thread, std::size_t t) {
    const SearchTask& task = work_.tasks[t];
    const auto engine = static_cast<std::size_t>(task.engine);
    SpaceCounts& counts = finders_[static_cast<std::size_t>(thread)]->counts[engine].space;
    items_[t] = work_.item(task, counts);
  });
}

/// Tasks of layouts that were the best before come first, then those whose layouts may be fastest.
std::vector<std::size_t> BestFirst::in_order() {
  const std::vector<Layout> before = request_.memory->last_best();
  const auto place = [&](std::size_t task) {
    return std::ranges::find_if(
               before, [&](const Layout& each) { return same_task(each, items_[task].base); }) -
           before.begin();
  };
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < items_.size(); ++t) {
    if (!items_[t].stretches.empty()) order.push_back(t);
  }
  std::ranges::stable_sort(order, {}, place);
  if (!order.empty() && place(order.front()) < std::ssize(before)) return order;
  std::vector<Seconds> least(items_.size());
  for_each_task(order.size(), [&](int thread, std::size_t i) {
    const SearchTask& task = work_.tasks[order[i]];
    LeastFloor floor;
    evaluator_(thread, task.engine).run(item(task), floor, request_.stop);
    least[order[i]] = floor.least();
  });
  std::ranges::stable_sort(order, {}, [&](std::size_t task) { return least[task]; });
  return order;
}

void BestFirst::list(const std::vector<std::size_t>& order) {
  for_each_task(order.size(), [&](int thread, std::size_t i) {
    ListsBounds& list = lists_[static_cast<std::size_t>(thread)];
    const SearchTask& task = work_.tasks[order[i]];
    const std::size_t before = list.fitting.size();
    const auto layouts = static_cast<std::size_t>(item(task).layouts());
    list.begin(task, fits_->of_task(order[i], layouts));
    evaluator_(thread, task.engine).run(item(task), list, request_.stop);
    if (list.fitting.size() == before || known_.limits()) return;
    // The first that fits: the one that leads by its bound limits all others.
    const auto leader = std::ranges::min_element(std::span(list.fitting).subspan(before), {},
                                                 &Bounded<Seconds>::least);
    show(thread, task, {&leader->index, 1});
    const auto best = finders_[static_cast<std::size_t>(thread)]->best_of_all();
    if (best.size() == request_.top) known_.lower(best.back().cost.step_time);
  });
}

void BestFirst::show(int thread, const SearchTask& task, std::span<const std::int64_t> indices) {
  Finder& finder = *finders_[static_cast<std::size_t>(thread)];
  finder.begin(task, nullptr);
  ShowsSome shows(finder, task, indices);
  evaluator_(thread, task.engine).run(item(task), shows, request_.stop);
  finder.meet(found_);
}

template <class Least>
void BestFirst::show(std::span<const Bounded<Least>> layouts) {
  std::vector<const SearchTask*> tasks;
  std::vector<std::vector<std::int64_t>> indices;
  std::vector<std::size_t> places(items_.size(), items_.size());  // by task, in both
  for (const Bounded<Least>& each : layouts) {
    const SearchTask& task = task_of(each.index);
    std::size_t& place = places[static_cast<std::size_t>(task.number)];
    if (place == items_.size()) {
      place = tasks.size();
      tasks.push_back(&task);
      indices.emplace_back();
    }
    indices[place].push_back(each.index);
  }
  for (std::vector<std::int64_t>& each : indices) std::ranges::sort(each);
  for_each_task(tasks.size(),
                [&](int thread, std::size_t t) { show(thread, *tasks[t], indices[t]); });
}

void BestFirst::time_fitting() {
  std::vector<Bounded<Seconds>> all;
  for (const ListsBounds& list : lists_) {
    all.insert(all.end(), list.fitting.begin(), list.fitting.end());
  }
  std::ranges::sort(all, {}, [](const auto& each) { return std::pair(each.least, each.index); });
  const std::span<const Bounded<Seconds>> sorted = all;
  show(sorted.first(std::min(sorted.size(), request_.top)));
  Seconds limit = known_.limit();
  for (const auto& finder : finders_) limit = std::min(limit, finder->time_limit());
  const auto end = std::ranges::upper_bound(sorted, limit, {}, &Bounded<Seconds>::least);
  show(std::span(sorted.begin(), end));
}

void BestFirst::find_smallest() {
  std::vector<Bounded<Bytes>> all;
  for (const ListsBounds& list : lists_) {
    all.insert(all.end(), list.others.begin(), list.others.end());
  }
  std::ranges::sort(all, {}, [](const auto& each) { return std::pair(each.least, each.index); });
  const std::span<const Bounded<Bytes>> sorted = all;
  show(sorted.first(std::min<std::size_t>(sorted.size(), 1)));
  Bytes most = usable_memory(*request_.cluster, *request_.job, request_.most_memory);
  for (const auto& finder : finders_) {
    const std::optional<Candidate>& smallest = finder->smallest();
    if (smallest) most = std::max(most, smallest->cost.point);
  }
  const auto end = std::ranges::upper_bound(sorted, most, {}, &Bounded<Bytes>::least);
  show(std::span(sorted.begin(), end));
}

}  // namespace

std::vector<std::unique_ptr<Finder>> found_best_first(const SearchRequest& request,
                                                      const WorkList& work, Bytes usable,
                                                      const EvaluatorOf& evaluator) {
  return BestFirst(request, work, usable, evaluator).run();
}

}  // namespace shardwise
