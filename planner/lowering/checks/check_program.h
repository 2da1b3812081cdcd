#pragma once

#include <string>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Lists what is wrong with a program, one line each; empty when it can run:
/// dependencies have no cycle over all stages, messages and streams included; every buffer is
/// allocated by one operation and freed by one, and operations that allocate, use or free it are
/// ordered by streams and dependencies, whatever takes how long, and of a run's program so does
/// each of its operands' bytes (check_operands()); activations are those of the operation's
/// micro-batch; every operation has a cost, and costs state one kind of work; each message is sent
/// once and received once, by another stage, with equal bytes; stages that share a group issue its
/// collectives in the same order, and two stages each other's messages (a mismatch is how real runs
/// hang).
std::vector<std::string> check_program(const StepProgram& program);

/// Aborts with what is wrong with a rank's program, which is that of its stage: we made it, and it
/// is about to be run.
void require_sound(const StageProgram& stage);

}  // namespace shardwise
