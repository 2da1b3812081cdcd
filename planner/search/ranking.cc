#include "planner/search/ranking.h"

#include <algorithm>
#include <limits>
#include <tuple>

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

bool same_degrees(const Candidate& a, const Candidate& b) {
  const auto degrees = [](const Candidate& c) {
    const Layout& l = c.layout;
    return std::tuple(c.engine, l.tp, l.cp, l.pp, l.ep, l.etp, l.dp_shard, l.dp_replicate);
  };
  return degrees(a) == degrees(b);
}

bool ranks_before(Objective objective, const Candidate& a, const Candidate& b) {
  return objective == Objective::memory ? by_memory(a) < by_memory(b) : by_time(a) < by_time(b);
}

void BestLayouts::offer(const Candidate& candidate) {
  const auto before = [&](const Candidate& a, const Candidate& b) {
    return ranks_before(objective_, a, b);
  };
  const auto alike = std::ranges::find_if(
      entries_, [&](const Candidate& c) { return same_degrees(c, candidate); });
  if (alike != entries_.end()) {
    if (!before(candidate, *alike)) return;
    entries_.erase(alike);
  } else if (entries_.size() == most_) {
    if (most_ == 0 || !before(candidate, entries_.back())) return;
    entries_.pop_back();
  }
  entries_.insert(std::ranges::upper_bound(entries_, candidate, before), candidate);
}

Seconds BestLayouts::time_limit(Bytes memory) const {
  if (entries_.size() < most_) return kForever;
  if (most_ == 0) return Seconds(0);
  const Evaluation& worst = entries_.back().cost;
  if (objective_ != Objective::memory) return worst.step_time;
  return memory < worst.point ? kForever : memory > worst.point ? Seconds(0) : worst.step_time;
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
