#pragma once

#include <cstddef>
#include <string>

#include "answers/plan_answer.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::sim {

/// Request for a page.
struct PageRequest {
  const Plan* plan = nullptr;
  const StepReport* measured = nullptr;  // a run of the plan; null where there is none
  const TracedRun* traced = nullptr;     // beside the plan; null where there is none
  std::string trace_file;                // of that, for what is wrong with it
  std::size_t top = 40;                  // layouts of the ranking; 0 searches none
  bool levers = false;                   // what would help most, of a ranking: some seconds
  std::string command;                   // that makes the page again
  std::string version;
  std::string date;  // of the footer; empty: none, so that equal input gives equal bytes
};

/// The files of a page, as the command takes them; empty: none.
struct PageFiles {
  std::string plan;
  std::string measured;
  std::string trace;
  std::string output;
};
/// "shardwise report plan.json measured.json -o report.html". A plan that is in no file is in the
/// page itself, which is made again from there.
std::string command_of(const PageFiles& files, std::size_t top = PageRequest().top,
                       bool levers = false, const std::string& date = {});

/// Why a report cannot stand on the page of a plan: it was not measured, or on another plan.
/// \param file  the name put into diagnostics
Diagnostics check_measured(const StepReport& report, const std::string& file, const Plan& plan);

struct MadePage {
  std::string text;
  StepReport report;  // of the simulated step
};

/// Simulates a plan, ranks the layouts of its question and makes the page of it all.
/// \returns the page, or why there is none: a step of too many operations, a trace without length
Result<MadePage> make_page(const PageRequest& request, const SayPlanning& say = {});

}  // namespace shardwise::sim
