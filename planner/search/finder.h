#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/search/pricing/evaluator.h"
#include "planner/search/ranking.h"
#include "planner/search/scout.h"
#include "planner/search/search.h"
#include "planner/search/work_list.h"

namespace shardwise {

/// Bound by a smaller space's answer: an answer never becomes worse than that.
struct Bound {
  explicit Bound(const SearchRequest& request)
      : best(request.objective, request.top), has_front(request.front) {}

  /// A layout that fits.
  void offer(const Candidate& candidate);
  void offer(std::span<const Candidate> candidates) {
    for (const Candidate& each : candidates) offer(each);
  }
  /// From this time on, a layout of this memory is in no answer.
  Seconds limit(Bytes memory, std::int32_t engine, const Layout& layout) const;
  bool fits() const { return !best.entries().empty() || !front.entries().empty(); }

  BestLayouts best;
  ParetoFront front;
  bool has_front;
};

/// Candidates of all threads so far. They spare each of them work and change no answer.
class Found {
 public:
  explicit Found(Bound known) : all_(std::move(known)) {}
  /// Adds what a thread has found. \returns all of it
  Bound join(const Bound& more);

 private:
  std::mutex mutex_;
  Bound all_;
};

/// Candidates of one thread.
class Finder final : public LayoutVisitor {
 public:
  /// \param bound  the answer of a smaller space, or none: layouts beyond it are too slow
  /// \param known  layouts of this space that are known already, or none
  Finder(const SearchRequest& request, Bytes usable, const Bound* bound = nullptr,
         const Bound* known = nullptr);

  /// \param priced  of the task, or none
  void begin(const SearchTask& task, const PricedTask* priced);
  /// Whether the task has a layout whose time may matter.
  bool wants_any() { return wants(0, std::numeric_limits<std::int64_t>::max()); }
  /// Exchanges what was found with the other threads, the more seldom the more it is.
  void meet(Found& others);
  /// Candidates of all threads when this one met the others, best first.
  std::span<const Candidate> best_of_all() const;
  /// From this time on, no layout is among the best, whatever memory it takes.
  Seconds time_limit() const;
  /// Least memory so far of layouts without a fitting one.
  const std::optional<Candidate>& smallest() const { return smallest_; }

  bool wants(std::int64_t first, std::int64_t end) override;
  bool sees_all() const override { return false; }
  bool may_matter(const MemoryPrice& least, std::int64_t first, std::int64_t orders) override;
  Seconds memory(const Layout& layout, const MemoryPrice& price, Seconds floor,
                 std::int64_t orders) override;
  void time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
            std::int64_t index) override;

  void offer(const Candidate& found);
  void offer(std::span<const Candidate> found) {
    for (const Candidate& each : found) offer(each);
  }
  /// All that another thread has found.
  void offer(const Finder& other);

  /// Whether any layout is known that fits: then nobody asks for those that do not.
  bool fits() const { return fitting_.fits() || (others_ && others_->fits()); }
  /// Fills the answer of a search.
  void answer(SearchResult& result) const;

  std::vector<SearchCounts> counts;  // by engine
  std::int64_t evaluated = 0;

 private:
  /// From this time on, a layout that fits is in no answer.
  Seconds limit_for(Bytes memory, const Layout& layout) const;

  Bytes usable_;
  const Bound* bound_;
  const PricedTask* priced_ = nullptr;  // of the task
  std::optional<Bound> others_;
  Candidate candidate_;
  std::int64_t first_index_ = 0;
  std::size_t alone_ = 0;  // tasks since it met the others
  Bound fitting_;
  // While none is known that fits.
  BestLayouts risky_;
  std::optional<Candidate> smallest_;
};

}  // namespace shardwise
