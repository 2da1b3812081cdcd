#pragma once

#include <cstddef>
#include <variant>

#include "planner/recorded/traffic_axis.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/paint.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// A tier of the cluster, innermost first.
struct TierNumber {
  std::size_t tier = 0;
};

/// Something of a step that takes another time, at `factor` of its seconds: 0.5 is twice as fast.
///
/// - *Operations of a kind* (paint_of()): all of their time, and of the transfers inside them. They
///   ask for the same share of links and memory, for so much shorter.
/// - *An axis*: every transfer of its streams and, in passes of whole layers, the time for which it
///   stops the pass. What is hidden in such a pass stays hidden; cut by kernel to see it move.
/// - *A tier of links*: the time for which its links carry a transfer, so that a link of 1 / factor
///   of the bandwidth is described. Latencies and what other tiers take stay; no transfer gets
///   shorter than another tier needs for it.
struct PriceScale {
  std::variant<Paint, TrafficAxis, TierNumber> what = Paint::forward;
  double factor = 1;  // above 0
};

/// Gives operations whose kind a scale changes costs that no other kind has. Before prices are
/// made; changes no price.
void split_costs(StepProgram& program, const PriceScale& scale);

/// Changes the prices of a program. \pre split_costs() was called for that scale before the prices
/// were made; the program is the plan's
void scale_prices(const Plan& plan, const StepProgram& program, const PriceScale& scale,
                  Prices& prices);

}  // namespace shardwise::sim
