#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "planner/search/ranking.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Layouts of one engine with the same of these are one where the best of each set of degrees is
/// listed.
using LayoutDegrees = std::array<std::int32_t, 7>;
inline LayoutDegrees degrees_of(const Layout& layout) {
  return {layout.tp,  layout.cp,       layout.pp,          layout.ep,
          layout.etp, layout.dp_shard, layout.dp_replicate};
}

/// Cost by which a row of layouts ranks.
struct RowCost {
  Fit fit = Fit::fits;
  Bytes memory;
  Seconds time;
  bool bound = false;  // it takes no less than `time`
};

/// Sorts rows by what is known of them: those that fit and those at risk, each by the objective,
/// then those that do not fit, the smallest first. Of equal ones the lower row is first.
/// \param cost_of  of a row, as RowCost
template <class CostOf>
void rank_rows(std::vector<std::uint32_t>& rows, Objective objective, CostOf cost_of) {
  if (objective == Objective::memory) {
    std::ranges::sort(rows, {}, [&](std::uint32_t row) {
      const RowCost cost = cost_of(row);
      return std::tuple(cost.fit, cost.memory, cost.time, row);
    });
    return;
  }
  std::ranges::sort(rows, {}, [&](std::uint32_t row) {
    const RowCost cost = cost_of(row);
    const Bytes over = cost.fit == Fit::does_not_fit ? cost.memory : Bytes(0);
    return std::tuple(cost.fit, over, cost.time, cost.bound, cost.memory, row);
  });
}

/// The rows below `count` that fit, have an exact time and that no other beats in memory without
/// losing time: by memory, times falling.
template <class CostOf>
std::vector<std::uint32_t> rows_on_front(std::size_t count, CostOf cost_of) {
  ParetoFront front;
  Candidate candidate;
  for (std::size_t row = 0; row < count; ++row) {
    const RowCost cost = cost_of(static_cast<std::uint32_t>(row));
    if (cost.fit != Fit::fits || cost.bound) continue;
    candidate.cost.point = cost.memory;
    candidate.cost.step_time = cost.time;
    candidate.index = static_cast<std::int64_t>(row);
    front.offer(candidate);
  }
  std::vector<std::uint32_t> rows;
  for (const Candidate& each : front.entries()) {
    rows.push_back(static_cast<std::uint32_t>(each.index));
  }
  return rows;
}

}  // namespace shardwise
