#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::exec::test {

/// Results of a plan that ranks of threads trained.
struct TrainedPlan {
  std::vector<double> losses;  // by step
  std::vector<double> norms;
  StepReport report;
};

/// A ledger by category, what a pass keeps and its temporaries as one: of a forward pass the ledger
/// counts a tensor that is kept as a temporary until its kernel is done, a record has it in what is
/// kept from the layer's begin.
std::array<std::int64_t, kMemoryCategories> in_categories(Ledger ledger);

/// Trains a plan for so many steps, two at least, on a text of the repository.
TrainedPlan train_plan(const Plan& plan, int steps);

}  // namespace shardwise::exec::test
