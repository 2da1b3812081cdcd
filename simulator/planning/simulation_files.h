#pragma once

#include <cstdint>
#include <string>

#include "planner/spec/plan.h"
#include "simulator/simulate.h"

namespace shardwise::sim {

/// Files and a folder to write a simulation to; empty: not that one.
struct SimulationFiles {
  std::string report;
  std::string trace;
  std::string svg;
  std::string chakra;  // the folder
};

/// Ranks of which there is a Chakra trace each, at most.
inline constexpr std::int64_t kMostChakraRanks = 4096;

/// Writes all of them, or nothing. \throws IoError
void write_simulation(const SimulationFiles& to, const Plan& plan, const Simulation& made);

}  // namespace shardwise::sim
