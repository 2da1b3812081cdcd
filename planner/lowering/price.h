#pragma once

#include <vector>

#include "planner/cost/layer_time.h"
#include "planner/spec/plan.h"
#include "planner/spec/step_program.h"
#include "planner/spec/units.h"

namespace shardwise {

/// How long an operation of that cost takes alone: what it moves over links and memory and what it
/// computes, priced by planner/cost. Launch latency and host time are not included. The work of
/// whole layers takes as long as the closed form says.
/// \param layers  layer_times of the plan; may be empty when the cost has no layers
Seconds price(const OpCost& cost, const ClusterSpec& cluster, const Layout& layout,
              const std::vector<LayerTime>& layers);

/// The prices of all costs of a program, by stage, parallel to StageProgram::costs.
/// \pre the program was lowered from this plan
std::vector<std::vector<Seconds>> price(const Plan& plan, const StepProgram& program);

}  // namespace shardwise
