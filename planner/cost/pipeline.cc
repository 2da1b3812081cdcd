#include "planner/cost/pipeline.h"

namespace shardwise {

PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop) {
  ChunkPasses passes(slots, chunks);
  std::vector<double> end;
  return sweep_pipeline(slots, passes, hop, end);
}

RunAndLength run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                          Seconds hop, SlotEnds& ends) {
  ChunkPasses passes(slots, chunks);
  ChunkPasses alone(slots, chunks);
  PipelineSweep<ChunkPasses> with(slots, passes, hop, ends.end);
  PipelineSweep<ChunkPasses> without(slots, alone, Seconds(0), ends.without_messages);
  // Each waits for its own slot before; side by side they share the walk.
  for (std::size_t i = 0; i < slots.slots.size(); ++i) {
    with.take(slots.slots[i], i);
    without.take(slots.slots[i], i);
  }
  return {std::move(with.run()), without.run().length};
}

}  // namespace shardwise
