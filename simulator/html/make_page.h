#pragma once

#include <cstddef>
#include <string>

#include "planner/spec/diagnostic.h"
#include "planner/spec/plan.h"
#include "planner/spec/report.h"
#include "simulator/planning/plan_answer.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::sim {

/// What a page is to be of.
struct PageRequest {
  const Plan* plan = nullptr;
  const StepReport* measured = nullptr;  // a run of the plan; null where there is none
  const TracedRun* traced = nullptr;     // beside the plan; null where there is none
  std::string trace_file;                // of that, for what is wrong with it
  std::size_t top = 40;                  // layouts of the ranking; 0 searches none
  std::string command;                   // that makes the page again
  std::string version;
};

struct MadePage {
  std::string text;
  StepReport report;  // of the simulated step
};

/// Simulates a plan, ranks the layouts of its question and makes the page of it all.
/// \returns the page, or why there is none: a step of too many operations, a trace without length
Result<MadePage> make_page(const PageRequest& request, const SayPlanning& say = {});

}  // namespace shardwise::sim
