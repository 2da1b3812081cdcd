#pragma once

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Number of a stream's lane ("tid") in traces of ours, whose processes are ranks. Perfetto takes
/// thread 0 of a process for the one that has the process's number, and draws two streams as one:
/// lanes begin beyond all ranks.
/// Source: Perfetto's trace processor, v52.0, on a trace of 16 ranks with lanes from 0.
constexpr int trace_lane(Stream stream) { return 1'000'000 + static_cast<int>(stream); }

}  // namespace shardwise
