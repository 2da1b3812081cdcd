#pragma once

#include <span>

#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Shows that the steps of a run end on all ranks (check_ranks()), before a GPU waits for ever: by
/// one queue of the hardware for all streams of a rank, which holds for any number, else by the
/// eight that CUDA has where nothing is said.
/// \param programs  of this rank; where they lack stages of the plan, those that lower() makes
/// \throws IoError with the operations that wait for one another
void require_end(const Plan& plan, std::span<const StepProgram> programs);

}  // namespace shardwise::exec
