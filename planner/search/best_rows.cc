#include "planner/search/best_rows.h"

#include <algorithm>
#include <limits>

namespace shardwise {

void BestRows::offer(std::uint32_t row, Seconds step_time) {
  Candidate candidate;
  candidate.cost = {all_.peaks(row), step_time};
  candidate.index = row;
  const std::lock_guard lock(mutex_);
  front_.offer(candidate);
  best_.emplace(step_time, all_.point[row], row);
  if (best_.size() > most_) best_.erase(std::prev(best_.end()));
}

Seconds BestRows::time_limit(Bytes memory) const {
  const std::lock_guard lock(mutex_);
  if (best_.size() < most_) return Seconds(std::numeric_limits<double>::infinity());
  const Seconds of_front = front_.time_limit(memory);
  return best_.empty() ? of_front : std::max(of_front, std::get<Seconds>(*best_.rbegin()));
}

Rows BestRows::rows() const {
  const std::lock_guard lock(mutex_);
  std::set<std::uint32_t> rows;
  for (const auto& [time, memory, row] : best_) rows.insert(row);
  for (const Candidate& each : front_.entries()) {
    rows.insert(static_cast<std::uint32_t>(each.index));
  }
  return {rows.begin(), rows.end()};
}

}  // namespace shardwise
