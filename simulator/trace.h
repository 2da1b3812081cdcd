#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "simulator/simulate.h"

namespace shardwise::sim {

/// Receives a trace piece by piece.
using TextSink = std::function<void(std::string_view)>;

/// The step as a Chrome trace that Perfetto and chrome://tracing open; docs/formats.md, "Traces".
/// A process for each rank, a thread for each stream, a complete event for each operation, flow
/// arrows for the waits between streams and for messages, counter tracks for memory (allocated,
/// reserved) and for how much of each link tier is asked for.
/// \param most_ranks  ranks that are written, the first ones
void write_trace(const Plan& plan, const Simulation& simulation, std::size_t most_ranks,
                 const TextSink& sink);

}  // namespace shardwise::sim
