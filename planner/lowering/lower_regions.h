#pragma once

#include "planner/lowering/lower.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// lower() by layers, where passes of layers are cut into regions wherever ranks meet inside them
/// (KernelPasses): the operations that our executor runs, one kernel call a region. A plan without
/// tensor, context and expert parallelism has the same program as by lower(). \pre as lower()
StepProgram lower_regions(const Plan& plan, StepKind step = StepKind::steady);

}  // namespace shardwise
