#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "planner/search/explore.h"

namespace shardwise {

Candidate Exploration::candidate(std::size_t row) const {
  return {engine[row], layout[row], {point[row], upper[row], known_time(row)}, index[row]};
}

Rows ranked_rows(const Exploration& all, Objective objective) {
  Rows rows(all.rows());
  std::iota(rows.begin(), rows.end(), 0U);
  const auto sort_by = [&](auto key) { std::ranges::sort(rows, {}, key); };
  if (objective == Objective::memory) {
    sort_by([&](std::uint32_t row) {
      return std::tuple(all.fit[row], all.point[row], all.known_time(row), row);
    });
  } else {
    sort_by([&](std::uint32_t row) {
      return std::tuple(all.fit[row], all.known_time(row), !all.timed(row), all.point[row], row);
    });
  }
  return rows;
}

Rows front_rows(const Exploration& all) {
  ParetoFront front;
  std::vector<std::uint32_t> row_of;
  Candidate candidate;
  for (std::size_t row = 0; row < all.rows(); ++row) {
    if (all.fit[row] != Fit::fits || !all.timed(row)) continue;
    candidate.cost = {all.point[row], all.upper[row], all.step_time[row]};
    candidate.index = static_cast<std::int64_t>(row);
    front.offer(candidate);
  }
  Rows rows;
  for (const Candidate& each : front.entries()) {
    rows.push_back(static_cast<std::uint32_t>(each.index));
  }
  return rows;
}

}  // namespace shardwise
