#pragma once

#include "planner/spec/report/report.h"
#include "simulator/comparison/compare.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::sim {

/// The median step of a trace of ours as a report that has its operations and nothing else.
/// \pre run.ours()
StepReport report_of(const TracedRun& run);

/// Two profilers' traces: median steps, and kernels by name, each's time in a step of its trace on
/// average. \pre both are profilers'
Comparison compare_profiled(const ProfiledSteps& first, const ProfiledSteps& second);

}  // namespace shardwise::sim
