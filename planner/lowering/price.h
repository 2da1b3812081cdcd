#pragma once

#include <vector>

#include "planner/cost/layer/layer_time.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// The ranks that meet in a collective.
GroupShape shape_of(const CollectiveWork& work, const ClusterSpec& cluster, const Layout& layout);

/// Time each kind of layer holds the compute stream as an operation of its own: layer_times,
/// less the part of the experts' exchange that runs beside another micro-batch's compute, of which
/// an operation of a whole layer shows nothing. docs/time.md, Step time.
std::vector<LayerTime> layer_passes(const Plan& plan);

/// Time an operation of that cost takes alone: what it moves over links and memory and what it
/// computes, priced by planner/cost. Launch latency and host time are not included. The work of
/// whole layers takes as long as the step-time model says.
/// \param layers  layer_passes of the plan; may be empty when the cost has no layers
Seconds price(const OpCost& cost, const ClusterSpec& cluster, const Layout& layout,
              const std::vector<LayerTime>& layers);

/// The prices of all costs of a program, by stage, parallel to StageProgram::costs.
/// \pre the program was lowered from this plan
std::vector<std::vector<Seconds>> price(const Plan& plan, const StepProgram& program);

}  // namespace shardwise
