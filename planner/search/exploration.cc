#include <cstdint>
#include <numeric>

#include "planner/search/explore.h"
#include "planner/search/row_ranking.h"

namespace shardwise {
namespace {

auto cost_in(const Exploration& all) {
  return [&all](std::uint32_t row) {
    return RowCost{all.fit[row], all.point[row], all.known_time(row), !all.timed(row)};
  };
}

}  // namespace

Candidate Exploration::candidate(std::size_t row) const {
  return {engine[row], layout[row], {peaks(row), known_time(row)}, index[row]};
}

Rows ranked_rows(const Exploration& all, Objective objective) {
  Rows rows(all.rows());
  std::iota(rows.begin(), rows.end(), 0U);
  rank_rows(rows, objective, cost_in(all));
  return rows;
}

Rows front_rows(const Exploration& all) { return rows_on_front(all.rows(), cost_in(all)); }

}  // namespace shardwise
