#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/clock/simulate.h"
#include "simulator/comparison/compare.h"
#include "simulator/traces/step_profile.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::sim {

/// Work of one kind and phase, measured and predicted.
struct ComparedKind {
  WorkKind kind = WorkKind::gemm;
  StepPhase phase = StepPhase::unknown;
  std::optional<KindTime> measured;
  std::optional<KindTime> predicted;
  /// Its part of the steps' difference, predicted less measured: time while nothing
  /// else computes.
  Seconds difference() const {
    return (predicted ? predicted->exposed : Seconds(0)) -
           (measured ? measured->exposed : Seconds(0));
  }
};

/// A measured step beside a simulated one, of one device.
struct StepComparison {
  StepProfile measured;
  StepProfile predicted;
  bool by_phase = true;             // false: the trace tells no phases
  std::vector<ComparedKind> kinds;  // most contributing first, whatever its sign
};

/// Joins two profiles on kind and phase; on kind alone where the measured one tells no phases.
StepComparison compare_steps(const StepProfile& measured, const StepProfile& predicted);

/// A trace beside the simulated step of a plan.
struct TraceComparison {
  std::size_t stage = 0;  // of the simulated program
  StepComparison step;
  std::vector<ComparedTime> operations;  // of a trace of ours: first measured, second predicted
  std::size_t joined = 0;                // of these, those that both have
  std::size_t unknown = 0;  // of the traced stage, runs of names that the simulation lacks
  bool same_plan = true;    // a trace of ours says which plan it is of
  std::string other_gpu;    // label of the plan's GPU, where a profiler's trace is of another one
};

/// A profiler's trace is compared with the stage of its rank (the slowest stage when it names
/// none); of a trace of ours, all operations by name, and the step of the slowest stage.
TraceComparison compare_trace(const TracedRun& run, const Plan& plan, const Simulation& simulation);

/// Schema "shardwise.import/1".
std::string comparison_json(const TracedRun& run, const TraceComparison& comparison);

}  // namespace shardwise::sim
