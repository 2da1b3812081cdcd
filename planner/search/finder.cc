#include "planner/search/finder.h"

#include <algorithm>

namespace shardwise {
namespace {

constexpr Seconds kAnyTime = Seconds(1e300);
constexpr Seconds kNever = Seconds(-1);

}  // namespace

void Bound::offer(const Candidate& candidate) {
  best.offer(candidate);
  if (has_front) front.offer(candidate);
}

Seconds Bound::limit(Bytes memory, std::int32_t engine, const Layout& layout) const {
  const Seconds of_best = best.time_limit(memory, engine, layout);
  return has_front ? std::max(of_best, front.time_limit(memory)) : of_best;
}

Bound Found::join(const Bound& more) {
  const std::lock_guard lock(mutex_);
  for (const Candidate& each : more.best.entries()) all_.best.offer(each);
  for (const Candidate& each : more.front.entries()) all_.front.offer(each);
  return all_;
}

Finder::Finder(const SearchRequest& request, Bytes usable, const Bound* bound, const Bound* known)
    : counts(request.engines.size()),
      usable_(usable),
      bound_(bound),
      fitting_(request),
      risky_(request.objective, std::min<std::size_t>(request.top, 1)) {
  if (known != nullptr) others_ = *known;
}

void Finder::begin(const SearchTask& task, const PricedTask* priced) {
  candidate_.engine = task.engine;
  first_index_ = task.first_index();
  priced_ = priced;
  if (priced_ == nullptr) return;
  const SearchCounts& of_task = priced_->counts;
  counts[static_cast<std::size_t>(task.engine)] += of_task;
  evaluated += of_task.does_not_fit + of_task.at_risk + of_task.ranked;
}

void Finder::meet(Found& others) {
  constexpr std::size_t kOften = 64;  // layouts
  if (++alone_ <= fitting_.best.entries().size() / kOften) return;
  alone_ = 0;
  others_ = others.join(fitting_);
}

std::span<const Candidate> Finder::best_of_all() const {
  return others_ ? others_->best.entries() : fitting_.best.entries();
}

Seconds Finder::limit_for(Bytes memory, const Layout& layout) const {
  const Seconds own = fitting_.limit(memory, candidate_.engine, layout);
  return others_ ? std::min(own, others_->limit(memory, candidate_.engine, layout)) : own;
}

bool Finder::wants(std::int64_t first, std::int64_t end) {
  if (priced_ == nullptr) return true;
  const std::vector<PricedLayout>& all = priced_->fitting;
  for (auto at = std::ranges::lower_bound(all, first, {}, &PricedLayout::index);
       at != all.end() && at->index < end; ++at) {
    if (at->least <= limit_for(at->point, priced_->degrees[at->like])) return true;
  }
  return false;
}

Seconds Finder::time_limit() const {
  const Seconds own = fitting_.best.time_limit(Bytes(0));
  return others_ ? std::min(own, others_->best.time_limit(Bytes(0))) : own;
}

bool Finder::may_matter(const MemoryPrice& least, std::int64_t /*first*/, std::int64_t orders) {
  if (fit_of(least, usable_) != Fit::does_not_fit || !fits()) return true;
  counts[static_cast<std::size_t>(candidate_.engine)].does_not_fit += orders;
  evaluated += orders;
  return false;
}

Seconds Finder::memory(const Layout& layout, const MemoryPrice& price, Seconds floor,
                       std::int64_t orders) {
  if (priced_ != nullptr) {
    return fit_of(price, usable_) == Fit::fits ? limit_for(price.point, layout) : kNever;
  }
  SearchCounts& count = counts[static_cast<std::size_t>(candidate_.engine)];
  evaluated += orders;
  const Fit fit = fit_of(price, usable_);
  if (fit == Fit::fits) {
    const bool too_slow =
        bound_ != nullptr && floor > bound_->limit(price.point, candidate_.engine, layout);
    (too_slow ? count.too_slow : count.ranked) += orders;
    if (too_slow) return kNever;
    return limit_for(price.point, layout);
  }
  const bool risks = fit == Fit::at_risk;
  (risks ? count.at_risk : count.does_not_fit) += orders;
  if (fits()) return kNever;
  // Whether it may be the smallest of all, and up to which time.
  const bool is_smaller = !smallest_ || price.point < smallest_->cost.point;
  const bool as_small = smallest_ && price.point == smallest_->cost.point;
  const Seconds smallest_limit = is_smaller ? kAnyTime
                                 : as_small ? smallest_->cost.step_time
                                            : kNever;
  return std::max(smallest_limit, risks ? risky_.time_limit(price.point) : kNever);
}

void Finder::time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
                  std::int64_t index) {
  candidate_.layout = layout;
  candidate_.cost = {price, step_time};
  candidate_.index = first_index_ + index;
  offer(candidate_);
}

void Finder::offer(const Candidate& found) {
  const Fit fit = fit_of(found.cost, usable_);
  if (fit == Fit::fits) {
    fitting_.offer(found);
    return;
  }
  if (!smallest_ || ranks_before(Objective::memory, found, *smallest_)) smallest_ = found;
  if (fit == Fit::at_risk) risky_.offer(found);
}

void Finder::offer(const Finder& other) {
  offer(other.fitting_.best.entries());
  offer(other.fitting_.front.entries());
  offer(other.risky_.entries());
  if (other.smallest_) offer(*other.smallest_);
}

void Finder::answer(SearchResult& result) const {
  result.best.assign(fitting_.best.entries().begin(), fitting_.best.entries().end());
  result.front.assign(fitting_.front.entries().begin(), fitting_.front.entries().end());
  result.risky.clear();
  result.smallest.reset();
  if (fits()) return;
  result.risky.assign(risky_.entries().begin(), risky_.entries().end());
  result.smallest = smallest_;
}

}  // namespace shardwise
