#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/recorded/recorded_step.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// An operation of a rank, by place in a list of steps.
struct StepPlace {
  std::size_t rank = 0;
  std::uint32_t op = kNoOperation;
  friend bool operator==(const StepPlace&, const StepPlace&) = default;
};

/// The operations of the critical path, in time.
std::vector<StepPlace> critical_chain(std::span<const RecordedStep> ranks);

/// Operations that one waited for: those before it on its rank (its stream's last, those of its
/// waits, the one that the host waited for) and, where it was not itself the last at its
/// rendezvous, the participant that was. The one that ended last, or was ready last, comes first.
std::vector<StepPlace> waited_for(std::span<const RecordedStep> ranks, const StepPlace& at);

/// The critical path of recorded steps of one clock: the chain of operations that ends with the
/// last of all ranks, each begun when the one before it ended or when the host had issued it. At a
/// rendezvous the chain crosses to the rank that was ready last; without rendezvous it stays on its
/// rank. What shortens one of its operations shortens the step, as long as the chain stays the
/// longest. Takes time and memory in proportion to the operations.
/// \returns the seconds that its operations ran, without waiting for other ranks; 0 of no operation
/// \pre no circle of waits over all ranks, rendezvous included (check_program())
Seconds critical_path(std::span<const RecordedStep> ranks);

}  // namespace shardwise
