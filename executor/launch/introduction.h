#pragma once

#include "executor/comm/communicator.h"
#include "executor/engine/arena.h"
#include "planner/spec/plan.h"

namespace shardwise::exec {

/// Prints what runs where: model, engine, each rank's host and data-parallel groups, and the memory
/// of a rank. All ranks call together; the one that speaks prints.
void introduce(const Plan& plan, const Arena& arena, World& world, bool speaks);

}  // namespace shardwise::exec
