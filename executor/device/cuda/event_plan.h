#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// The events by which the streams of a device keep a program's order: as few as say the same.
struct EventPlan {
  struct Op {
    std::vector<std::uint32_t> waits;  // operations of other streams, each of which records
    bool records = false;              // an event when it is over, for others
    bool after_begin = false;  // the first of its stream, and waits for none: for the step's begin
  };
  std::vector<Op> ops;
  /// Operations, each of which records, that the compute stream waits for in the end: then all are
  /// over.
  std::vector<std::uint32_t> joins;
};

/// Leaves out the waits that follow from other waits and from the order of streams: the transitive
/// reduction, which is one alone. \pre waits point backwards (check_program())
EventPlan event_plan(const StageProgram& program);

}  // namespace shardwise::exec
