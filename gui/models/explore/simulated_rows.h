#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gui/models/explore/layout_row.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// The simulated step of a layout.
struct SimulatedRow {
  Layout layout;
  Seconds step;
};

/// The rows that `shardwise plan` simulates to rank them: by the step-time model the best of each
/// set of degrees among those that fit, best first, sim::kSimulated at most. Rows whose time is a
/// lower bound are none of them. Empty where the command simulates none, as their steps are too
/// long.
/// \param plan  the question
std::vector<std::uint32_t> rows_to_simulate(const Answer& answer, const Plan& plan);

/// Gives these rows their simulated steps, takes away those of all others, and ranks: rows with one
/// lead, in the order of them. \param rows  of the answer, as rows_to_simulate() has them
void put_simulated(Answer& answer, std::span<const std::uint32_t> rows,
                   std::span<const SimulatedRow> steps);

/// The best row by the step-time model alone, which why-not compares with; none of no rows.
std::optional<std::uint32_t> best_by_model(const Answer& answer);

}  // namespace shardwise::view
