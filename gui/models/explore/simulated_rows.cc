#include "gui/models/explore/simulated_rows.h"

#include <algorithm>
#include <set>

#include "answers/simulated_steps.h"
#include "gui/models/explore/explored_rows.h"
#include "planner/search/row_ranking.h"

namespace shardwise::view {

std::vector<std::uint32_t> rows_to_simulate(const Answer& answer, const Plan& plan) {
  std::vector<std::uint32_t> ranked;
  for (const std::uint32_t i : answer.ranked) {
    const LayoutRow& row = answer.rows[i];
    if (row.fit == Fit::fits && !row.bound && !row.typed) ranked.push_back(i);
  }
  rank_by_model(answer, ranked);
  std::vector<std::uint32_t> best;
  std::set<LayoutDegrees> seen;
  Plan other = plan;
  for (const std::uint32_t i : ranked) {
    if (best.size() == sim::kSimulated) break;
    other.layout = answer.rows[i].layout;
    if (!seen.insert(degrees_of(other.layout)).second) continue;
    if (sim::layer_passes_of_step(other) > sim::kMostLayerPasses) return {};
    best.push_back(i);
  }
  return best;
}

void put_simulated(Answer& answer, std::span<const std::uint32_t> rows,
                   std::span<const SimulatedRow> steps) {
  bool changed = false;
  for (LayoutRow& row : answer.rows) {
    if (!row.simulated) continue;
    set_simulated(row, std::nullopt);
    changed = true;
  }
  for (const std::uint32_t i : rows) {
    const auto found = std::ranges::find(steps, answer.rows[i].layout, &SimulatedRow::layout);
    if (found == steps.end()) continue;
    set_simulated(answer.rows[i], found->step);
    changed = true;
  }
  if (changed) rank(answer);
}

std::optional<std::uint32_t> best_by_model(const Answer& answer) {
  // It is the first of those without a simulated step, or one of those with one, which lead.
  std::vector<std::uint32_t> leading;
  for (const std::uint32_t i : answer.ranked) {
    leading.push_back(i);
    if (!answer.rows[i].simulated) break;
  }
  if (leading.empty()) return std::nullopt;
  rank_by_model(answer, leading);
  return leading.front();
}

}  // namespace shardwise::view
