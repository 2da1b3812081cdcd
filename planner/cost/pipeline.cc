#include "planner/cost/pipeline.h"

namespace shardwise {

PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop) {
  ChunkPasses passes(slots, chunks);
  return sweep_pipeline(slots, passes, hop);
}

double messages_of_stage(const PipelineSlots& slots) {
  return static_cast<double>(slots.messages) / std::max(1, slots.stages - 1);
}

}  // namespace shardwise
