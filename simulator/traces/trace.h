#pragma once

#include <cstddef>
#include <string>

#include "planner/recorded/trace_writer.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// Ranks of a trace, where nobody says how many.
inline constexpr std::size_t kMostTracedRanks = 64;

/// The step as a trace (planner/recorded/trace_writer.h), with counters for memory (allocated,
/// reserved) and for how much of each link tier is asked for.
/// \param most_ranks  ranks that are written, the first ones
void write_trace(const Plan& plan, const Simulation& simulation, std::size_t most_ranks,
                 const TextSink& sink);
std::string trace_text(const Plan& plan, const Simulation& simulation,
                       std::size_t most_ranks = kMostTracedRanks);

}  // namespace shardwise::sim
