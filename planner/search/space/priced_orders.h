#pragma once

#include <stop_token>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/search/space/space.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {

/// An order of ranks, and what the plan's layout costs in it.
struct PricedOrder {
  RankOrder order;
  Evaluation cost;
};

/// The orders that put some group of the plan's layout on other links: one of each that cost the
/// same, the plan's own among them. By step time; of equals, the plan's own first. Asked to stop,
/// it has the ones that it has priced. \pre the plan's layout is legal
std::vector<PricedOrder> priced_orders(const Plan& plan, const std::stop_token& stop = {});

}  // namespace shardwise
