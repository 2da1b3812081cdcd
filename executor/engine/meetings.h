#pragma once

#include <span>
#include <string>

#include "executor/comm/control_group.h"
#include "executor/engine/program_runner.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Names the clock of this process's spans: that of the machine since it started. Empty where it is
/// not known.
std::string this_clock();

/// Puts into `met` of each collective of a step when the last rank of its group had come, and of
/// each message when the second of the two had: until then a rank waits, from then on bytes move.
/// All ranks of `everyone` call together, each with its own spans of its stage's program. Where
/// ranks are on machines of different clocks nothing is known of one another's and spans stay as
/// they are.
void find_meetings(const StageProgram& program, const Layout& layout, ControlGroup& everyone,
                   std::span<OpSpan> spans);

}  // namespace shardwise::exec
