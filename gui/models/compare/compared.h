#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::view {

/// Object that a plan is compared with: a report, a trace, or the prediction of another plan.
struct Compared {
  std::string file;
  std::string origin;  // "measured", "simulated", "estimated"
  StepReport report;   // of a trace, its step and its operations alone
  std::optional<Plan> plan;
  std::shared_ptr<const sim::TracedRun> run;  // of a trace

  bool measured() const { return origin == "measured"; }
  bool profiled() const { return run && run->by_profiler; }
  /// It says what takes which memory, and where the time goes.
  bool whole() const { return run == nullptr; }
};

/// Progress of reading a trace.
struct ReadSoFar {
  double share = 0;        // of the file
  std::int64_t spans = 0;  // that were in it
};
struct ReadListener {
  std::function<void(ReadSoFar)> say;
  std::stop_token stop;
};

/// Reads what a plan can be compared with. \returns it, or why the file cannot be compared
Result<Compared> read_compared(const std::string& path, const ReadListener& listening = {});

/// Comparison with a plan that was read, and with a report.
Compared compared_plan(Plan plan, std::string file);
Compared compared_report(StepReport report, std::string file);

}  // namespace shardwise::view
