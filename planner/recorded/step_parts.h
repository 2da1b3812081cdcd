#pragma once

#include <cstdint>

#include "planner/recorded/recorded_step.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Facts of a step besides when its operations ran. As it is, the facts of a recorder: the clock
/// alone. The simulator knows prices, hosts and the other stages too.
class StepFacts {
 public:
  virtual ~StepFacts() = default;
  StepFacts() = default;
  StepFacts(const StepFacts&) = delete;
  StepFacts& operator=(const StepFacts&) = delete;

  /// Files what the compute stream ran of an operation: under its role.
  virtual void file(const ProgramOp& op, std::uint32_t number, const RecordedSpan& span,
                    TimeParts& parts);
  /// Why an operation did not begin although all that it waited for had ended, until `to`: it was
  /// not issued, or its thread not awake.
  virtual Seconds TimeParts::*late_part(std::uint32_t op, double to) const;
  /// Part of the time between the rank's last operation and the end of the step: its batch is read
  /// and its loss exchanged.
  virtual Seconds TimeParts::*after_last() const;
};

/// Where a rank's step went; the parts add up to its length. What the compute stream ran is filed
/// by `facts`. While it ran nothing, the gap belongs to what the next operation followed, back in
/// time: under its stream's axis while bytes moved; before that, straggler while another rank of
/// the group was not ready, or the bubble where that rank is of another stage; under its role what
/// it computed itself before it could communicate.
TimeParts step_parts(const RecordedStep& step, StepFacts& facts);

/// Part of the step in which the compute stream waits for an operation of this stream.
Seconds TimeParts::*part_of(Stream stream);

}  // namespace shardwise
