#include "planner/cost/pipeline.h"

namespace shardwise {

PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop) {
  ChunkPasses passes(slots, chunks);
  return sweep_pipeline(slots, passes, hop);
}

}  // namespace shardwise
