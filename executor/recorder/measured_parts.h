#pragma once

#include <cstdint>
#include <vector>

#include "executor/recorder/rank_record.h"
#include "planner/spec/report.h"

namespace shardwise::exec {

/// Where the step's time went: what the compute stream ran, by role. While it ran nothing, the gap
/// belongs to what the next operation waited for, followed back in time, as in a prediction: data
/// parallel while bytes moved, straggler while others of a group had not come, the optimizer while
/// the squares of the gradient's norm were computed. Before the first operation and after the last
/// it is input.
TimeParts measured_parts(const StepRecord& record);

/// How much of each operation, from when the last of its group had come, ran with nothing on the
/// compute stream, in nanoseconds.
std::vector<std::int64_t> exposed_ns(const StepRecord& record);

/// When the first operation of a step began.
std::int64_t begin_of(const StepRecord& record);

}  // namespace shardwise::exec
