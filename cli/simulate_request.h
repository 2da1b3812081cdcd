#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/job_flags.h"
#include "cli/screen_flags.h"
#include "planner/spec/diagnostic.h"
#include "planner/spec/plan.h"
#include "planner/spec/report.h"
#include "simulator/noise.h"
#include "simulator/simulate.h"

namespace shardwise::cli {

/// What `shardwise simulate` was asked, as given.
struct SimulateFlags {
  AskedJob job;
  AskedLayout layout;
  std::string plan;
  std::string output;
  std::string trace;
  std::string svg;
  std::string chakra;
  std::string in_network = "on";
  std::string import;
  std::int64_t top = 12;
  std::string granularity;
  std::string transport = "usual";
  std::string contention = "on";
  std::string host = "on";
  bool one_connection = false;
  bool all_ranks = false;
  sim::NoiseRules noise;
  std::string versus;
  std::int64_t growth = 0;
  bool ignore_memory = false;
  bool explain = false;
  ScreenFlags screen;
};

/// No plan file and no flag of a layout: plan's best is simulated. A trace to compare with and a
/// cluster that grows are of data parallelism alone then.
bool takes_best(const SimulateFlags& flags);

/// A plan, and what was taken for want of a flag.
struct SimulatedPlan {
  Plan plan;
  std::vector<Assumption> assumptions;
};

/// Something wrong with a flag of the command line.
Diagnostics wrong_flag(const std::string& flag, const std::string& message,
                       const std::string& hint);

/// The plan that is simulated: of a file, or of the flags. Refuses layouts that cannot be, failures
/// of the network that leave ranks without a way to one another, and a step that never ends.
Result<SimulatedPlan> simulated_plan(const SimulateFlags& flags);
/// The same for a plan from elsewhere.
Result<SimulatedPlan> checked_plan(const SimulateFlags& flags, SimulatedPlan read);

sim::SimulationOptions options_of(const SimulateFlags& flags);

}  // namespace shardwise::cli
