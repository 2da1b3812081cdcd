#pragma once

#include <cstdint>

#include "cli/flags/simulate_request.h"
#include "planner/spec/plan/plan.h"
#include "simulator/clock/simulate.h"

namespace shardwise::cli {

/// Ranks of which --chakra writes a file each, at most.
inline constexpr std::int64_t kMostChakraRanks = 4096;

/// Writes what the flags name: report, trace, picture, Chakra traces; all of them, or nothing.
/// \throws IoError
void write_simulation(const SimulateFlags& flags, const Plan& plan, const sim::Simulation& made);

}  // namespace shardwise::cli
