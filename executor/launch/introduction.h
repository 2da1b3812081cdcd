#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/comm/world.h"
#include "executor/engine/arena.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

/// Prints what is about to run, before memory is touched: model, engine, layout, and how long
/// `steps` more steps are predicted to take. One process calls.
void announce(const Plan& plan, std::int64_t steps);

/// Prints what runs where: each rank's host and data-parallel groups, and the memory of a rank. All
/// ranks call together; the one that speaks prints.
void introduce(const Plan& plan, const Arena& arena, World& world, bool speaks);

/// Prints what computes, before memory is taken.
void introduce_devices(const std::vector<std::string>& notes);

/// Prints how steady steps run, where that is not empty, and whether sums over `ranks` have another
/// order than on CPUs.
void introduce_steps(const std::string& how_they_run, std::int64_t ranks,
                     const CommunicatorTraits& traits);

}  // namespace shardwise::exec
