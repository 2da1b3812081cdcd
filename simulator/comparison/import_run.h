#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"
#include "simulator/clock/simulate.h"
#include "simulator/comparison/kind_comparison.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::sim {

/// "kernel" or "layer", as the run was recorded; a profiler sees kernels.
std::string granularity_of(const TracedRun& run);

/// A recorded run beside the simulated step of a plan.
struct ImportedRun {
  Simulation simulation;
  TraceComparison comparison;
};

/// Simulates the plan at the run's granularity and compares. Refuses another granularity for a
/// trace of ours, and steps of no length.
/// \param file         the name put into diagnostics
/// \param granularity  as asked for, which a profiler's trace leaves free; empty: the run's
Result<ImportedRun> import_run(const TracedRun& run, const std::string& file, const Plan& plan,
                               SimulationOptions options, const std::string& granularity);

/// Reasons why the comparison is less than whole, a sentence each: another plan, names that the
/// simulation lacks, events that were left out.
std::vector<std::string> import_notes(const TracedRun& run, const TraceComparison& comparison);

/// "1 operation", "2,345 operations".
std::string counted(std::size_t count, const char* one, const char* many);

}  // namespace shardwise::sim
