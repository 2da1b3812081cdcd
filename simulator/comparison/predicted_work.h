#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "planner/spec/plan/layout.h"
#include "planner/spec/program/step_program.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/operation_record.h"
#include "simulator/traces/step_profile.h"

namespace shardwise::sim {

struct KindAndPhase {
  WorkKind kind = WorkKind::memory_bound;
  StepPhase phase = StepPhase::unknown;
};
/// Kind of each operation of a program, by its name without the micro-batch ("fwd.layer12").
std::unordered_map<std::string, KindAndPhase> kinds_by_name(const StepProgram& program);

/// A simulated stage's step as a profiler on its representative would see it: from its first
/// operation to the end of the step; a collective's kernel runs from its own start, waiting for the
/// others included.
StepProfile profiled_prediction(const Simulation& simulation, std::size_t stage);

/// A simulated stage's step as a trace of ours has it: from the step's first operation, of any
/// stage, to its end; what an operation waits for other participants is idle time.
StepProfile predicted_profile(const Simulation& simulation, std::size_t stage);

/// Profile of a step of a trace of ours.
struct TracedProfile {
  StepProfile profile;
  std::size_t unknown = 0;  // operations left out: none in the simulation has their name
};
/// Operations are of the kind that those of their name have in the simulation, on whichever stage.
/// \param stage  as traced
TracedProfile traced_profile(const OperationStep& step, const Simulation& simulation,
                             std::size_t stage);

/// The pipeline stage of a rank. \pre rank < layout.world()
std::size_t stage_of_rank(const Layout& layout, std::int64_t rank);

/// The stage that computes longest.
std::size_t slowest_stage(const Simulation& simulation);

}  // namespace shardwise::sim
