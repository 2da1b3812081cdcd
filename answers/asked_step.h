#pragma once

#include <string>
#include <vector>

#include "answers/plan_answer.h"
#include "answers/plan_question.h"
#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"
#include "simulator/clock/noise.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// A step to simulate, as a user gave it.
struct AskedStep {
  std::string plan;  // a plan.json; empty: what follows
  AskedJob job;
  AskedLayout layout;
  BatchWhenOpen batch = BatchWhenOpen::usual;

  std::string granularity;          // layer or kernel; empty: layer
  std::string transport = "usual";  // registered or copy_engines
  std::string in_network = "on";    // off: switches do not reduce
  std::string contention = "on";
  std::string host = "on";
  bool one_connection = false;
  bool all_ranks = false;
  bool traced = false;    // it is written as a trace, too
  Bytes memory_limit{0};  // of this machine for the simulation; 0: none
  NoiseRules noise;
};

/// A plan, and what was taken for want of a flag.
struct PlannedStep {
  Plan plan;
  std::vector<Assumption> assumptions;
};

SimulationOptions options_of(const AskedStep& asked);

/// The plan of a file or of the texts, or all that is wrong with them: both at once, too.
Result<PlannedStep> read_step(const AskedStep& asked);

/// Lists what is given though the plan's file has it already. Empty without a file.
Diagnostics fixed_by_plan(const AskedStep& asked);
/// Says so of one more flag.
Diagnostic fixed_by_plan(std::string flag, const std::string& plan);

/// The plan of the answer's first row. \pre answer.best is not empty
PlannedStep best_step(const PlanQuestion& question, const PlanAnswer& answer);

/// Takes reductions out of the switches where they are not wanted.
void set_network(const AskedStep& asked, Plan& plan);

/// Why the step cannot be simulated: failures of the network that leave ranks without a way to one
/// another, too many operations, a step that never ends.
Diagnostics step_problems(const AskedStep& asked, const Plan& plan);

/// Lists what no range of a number can say: slow nodes that are not slow, and more of them than
/// there are.
Diagnostics noise_problems(const NoiseRules& noise, const Plan& plan);

}  // namespace shardwise::sim
