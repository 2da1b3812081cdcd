#include "planner/cost/memory/host_memory.h"

#include <algorithm>
#include <numeric>

#include "planner/schedule/held_passes.h"

namespace shardwise {

std::int64_t host_bytes(const StageParts& parts, const StageContext& context, std::int64_t states) {
  if (!context.layout->offload_activations) return states;
  const InFlight flight =
      micro_batches_in_flight(*context.layout, context.stage, context.num_microbatches);
  const std::int64_t saved =
      std::accumulate(parts.chunk_saved.begin(), parts.chunk_saved.end(), std::int64_t{0});
  return states + saved * flight.held / flight.chunks;
}

std::int64_t host_bytes(const StageParts& parts, const StageContext& context,
                        const StageStates& states) {
  return host_bytes(parts, context, states.on_host.bytes());
}

Bytes host_lacks(std::int64_t bytes_of_rank, const MemoryRules& rules) {
  if (rules.host_bytes == 0) return Bytes(0);
  return Bytes(std::max<std::int64_t>(0, bytes_of_rank * rules.ranks_of_host - rules.host_bytes));
}

}  // namespace shardwise
