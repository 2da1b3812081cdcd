#pragma once

#include <vector>

#include "planner/search/advice/break_even.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::sim {

/// What a plan's cluster competes with at the same work: itself, with half and with twice as many
/// GPUs where it comes in such numbers, and, where its price is known, clusters of the catalogue
/// with as many GPUs of another kind, the nearest in peak speed first, `others` of them at most.
/// Only clusters of its own machines are pulled.
std::vector<Contender> contenders_of(const Plan& plan, std::size_t others);

}  // namespace shardwise::sim
