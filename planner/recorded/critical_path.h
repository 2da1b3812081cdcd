#pragma once

#include <span>

#include "planner/recorded/recorded_step.h"
#include "planner/spec/units.h"

namespace shardwise {

/// The critical path of recorded steps of one clock: the chain of operations that ends with the
/// last of all ranks, each begun when the one before it ended or when the host had issued it. At a
/// rendezvous the chain crosses to the rank that was ready last; without rendezvous it stays on its
/// rank. What shortens one of its operations shortens the step, as long as the chain stays the
/// longest. Takes time and memory in proportion to the operations.
/// \returns the seconds that its operations ran, without waiting for other ranks; 0 of no operation
/// \pre no circle of waits over all ranks, rendezvous included (check_program())
Seconds critical_path(std::span<const RecordedStep> ranks);

}  // namespace shardwise
