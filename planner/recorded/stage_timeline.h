#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "planner/recorded/recorded_step.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// The part of the step's time to which an operation of the compute stream counts.
Seconds TimeParts::*part_of(OpRole role);

/// How much of each operation, from when all that it communicates with were ready, ran with nothing
/// on the compute stream, in seconds. Nothing of the compute stream's own operations.
std::vector<double> exposed_times(const RecordedStep& step);

/// A report's timeline of a recorded step: its streams, how long it computed and stood idle;
/// without memory and links. Adds its operations, by name without micro-batch, to `operations`. The
/// time in which an operation computes before it can communicate is the next optimizer operation's:
/// the squares of the gradient's norm.
StageTimeline stage_timeline(const RecordedStep& step, std::vector<OperationTime>& operations);

/// The stage, or rank, that a report takes its parts of: the one whose compute stream is busiest,
/// the first of equals. \pre there is one
std::size_t busiest_of(std::span<const StageTimeline> stages);

/// The share of communication and copies that ran beside the compute stream; 0 where there is none.
double overlap_of(std::span<const StageTimeline> stages);

/// Times of a stage's communication, by mesh axis; none of streams that communicate nothing.
std::vector<AxisTime> times_by_axis(const StageTimeline& stage);

}  // namespace shardwise
