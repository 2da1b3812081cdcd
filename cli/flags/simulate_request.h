#pragma once

#include <cstdint>
#include <string>

#include "answers/asked_step.h"
#include "cli/flags/screen_flags.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::cli {

/// Command line of `shardwise simulate`, as given.
struct SimulateFlags {
  sim::AskedStep asked;
  std::string output;
  std::string trace;
  std::string svg;
  std::string chakra;
  std::string import;
  std::int64_t top = 12;
  std::int64_t growth = 0;
  bool ignore_memory = false;
  bool explain = false;
  ScreenFlags screen;
};

/// No plan file and no flag of a layout: plan's best is simulated. A trace to compare with and a
/// cluster that grows are of data parallelism alone then.
bool takes_best(const SimulateFlags& flags);

/// The plan that is simulated: of a file, or of the flags. Refuses layouts that cannot be, files
/// that cannot be written, and steps that cannot be simulated.
Result<sim::PlannedStep> planned_step(const SimulateFlags& flags);
/// Checks a plan from elsewhere as above.
Result<sim::PlannedStep> checked_step(const SimulateFlags& flags, sim::PlannedStep read);

}  // namespace shardwise::cli
