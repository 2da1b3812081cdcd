#pragma once

#include "planner/spec/plan.h"
#include "planner/spec/step_program.h"

namespace shardwise {

/// Which step of a run a program is of.
enum class StepKind : std::uint8_t {
  steady,  // any but the first
  first,   // Megatron DDP learns the order of its gradients and overlaps nothing; lazy moments
           // appear; parameters are whole, so none are gathered for it
};

/// What every rank of each pipeline stage runs in one step of `plan`: operations with streams,
/// dependencies, buffers and costs. The only place that knows schedules, prefetching and what is
/// freed when. Pure: equal plans give equal programs. docs/simulator.md, "The step program".
/// \pre check_layout has no diagnostics for the plan's layout
StepProgram lower(const Plan& plan, Granularity granularity = Granularity::layer,
                  StepKind step = StepKind::steady);

}  // namespace shardwise
