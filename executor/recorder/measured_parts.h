#pragma once

#include "executor/recorder/rank_record.h"
#include "planner/spec/report.h"

namespace shardwise::exec {

/// Where the step's time went: what the compute stream ran, by role. While it ran nothing, the gap
/// belongs to what the next operation waited for, followed back in time, as in a prediction: data
/// parallel while bytes moved, straggler while others of a group had not come, the optimizer while
/// the squares of the gradient's norm were computed. Before the first operation and after the last
/// it is input.
TimeParts measured_parts(const StepRecord& record);

}  // namespace shardwise::exec
