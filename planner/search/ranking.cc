#include "planner/search/ranking.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "planner/search/row_ranking.h"

namespace shardwise {
namespace {

constexpr Seconds kForever(std::numeric_limits<double>::infinity());

auto by_memory(const Candidate& c) {
  return std::tuple(c.cost.point.value(), c.cost.step_time.value(), c.index);
}
auto by_time(const Candidate& c) {
  return std::tuple(c.cost.step_time.value(), c.cost.point.value(), c.index);
}

}  // namespace

bool ranks_before(Objective objective, const Candidate& a, const Candidate& b) {
  return objective == Objective::memory ? by_memory(a) < by_memory(b) : by_time(a) < by_time(b);
}

BestLayouts::Degrees BestLayouts::degrees_of(std::int32_t engine, const Layout& layout) {
  Degrees degrees{engine};
  std::ranges::copy(shardwise::degrees_of(layout), degrees.begin() + 1);
  return degrees;
}

std::size_t BestLayouts::DegreesHash::operator()(const Degrees& degrees) const {
  std::size_t hash = 0;
  for (const std::int32_t degree : degrees) {
    hash = (hash ^ static_cast<std::size_t>(degree)) * 0x9e3779b97f4a7c15U;
  }
  return hash ^ hash >> 32;
}

void BestLayouts::offer(const Candidate& candidate) {
  const auto before = [&](const Candidate& a, const Candidate& b) {
    return ranks_before(objective_, a, b);
  };
  const Degrees degrees = degrees_of(candidate.engine, candidate.layout);
  const auto alike = by_degrees_.find(degrees);
  if (alike != by_degrees_.end()) {
    if (!before(candidate, alike->second)) return;
    entries_.erase(std::ranges::lower_bound(entries_, alike->second, before));
  } else if (entries_.size() == most_) {
    if (most_ == 0 || !before(candidate, entries_.back())) return;
    by_degrees_.erase(degrees_of(entries_.back().engine, entries_.back().layout));
    entries_.pop_back();
  }
  entries_.insert(std::ranges::upper_bound(entries_, candidate, before), candidate);
  by_degrees_.insert_or_assign(degrees, candidate);
}

Seconds BestLayouts::time_limit(Bytes memory, const Evaluation& worst) const {
  if (objective_ != Objective::memory) return worst.step_time;
  return memory < worst.point ? kForever : memory > worst.point ? Seconds(0) : worst.step_time;
}

Seconds BestLayouts::time_limit(Bytes memory) const {
  if (entries_.size() < most_) return kForever;
  return most_ == 0 ? Seconds(0) : time_limit(memory, entries_.back().cost);
}

Seconds BestLayouts::time_limit(Bytes memory, std::int32_t engine, const Layout& layout) const {
  constexpr std::size_t kShort = 32;  // a list that is soon full
  if (most_ <= kShort && entries_.size() == most_) return time_limit(memory);
  const auto alike = by_degrees_.find(degrees_of(engine, layout));
  return alike == by_degrees_.end() ? time_limit(memory) : time_limit(memory, alike->second.cost);
}

void ParetoFront::offer(const Candidate& candidate) {
  if (!(candidate.cost.step_time <= time_limit(candidate.cost.point))) return;
  const Evaluation& cost = candidate.cost;
  auto at = std::ranges::lower_bound(entries_, cost.point, {},
                                     [](const Candidate& c) { return c.cost.point; });
  // Equal time with less memory, or the same point found earlier.
  if (at != entries_.begin() && std::prev(at)->cost.step_time <= cost.step_time) return;
  if (at != entries_.end() && at->cost.point == cost.point &&
      at->cost.step_time == cost.step_time && at->index < candidate.index) {
    return;
  }
  // Those with as much memory or more and as much time or more are beaten now.
  const auto end = std::find_if(
      at, entries_.end(), [&](const Candidate& c) { return c.cost.step_time < cost.step_time; });
  at = entries_.erase(at, end);
  entries_.insert(at, candidate);
}

Seconds ParetoFront::time_limit(Bytes memory) const {
  const auto after = std::ranges::upper_bound(entries_, memory, {},
                                              [](const Candidate& c) { return c.cost.point; });
  return after == entries_.begin() ? kForever : std::prev(after)->cost.step_time;
}

}  // namespace shardwise
