#include "planner/schedule/pipeline.h"

#include "planner/schedule/pipeline_sweep.h"
#include "planner/schedule/plain_sweep.h"

namespace shardwise {

void ChunkPasses::take_turns(const PipelineSlots::Slot& slot, PassTurn& turn,
                             const ChunkEdges& edges, double whole, ChunkSpan& span) {
  const std::size_t enters = slot.part == LayerPart::forward ? 0 : 1;
  const double first = edges[enters].of(slot.part).value();
  const double last = edges[1 - enters].of(slot.part).value();
  double& end = free_[static_cast<std::size_t>(slot.stage)];
  const double begin = end - whole;
  end = std::max(end, turn.room + last);
  const bool one = first >= whole;
  turn.read = one ? end : begin + first;
  if (one && slot.first) span.begin = Seconds(end - whole);
}

PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop) {
  ChunkPasses passes(slots, chunks, {});
  std::vector<double> end;
  return sweep_pipeline(slots, passes, hop, end);
}

RunAndLength run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                          std::span<const ChunkEdges> edges, Seconds hop, SlotEnds& ends) {
  ChunkPasses passes(slots, chunks, edges);
  if (slots.stages == 1) {
    PipelineRun run = sweep_pipeline(slots, passes, Seconds(0), ends.end);
    const Seconds length = run.length;
    return {std::move(run), length};
  }
  if (slots.plain) return sweep_plain(*slots.plain, chunks, hop, ends);
  ChunkPasses alone(slots, chunks, edges);
  PipelineSweep<ChunkPasses> with(slots, passes, hop, ends.end);
  PipelineSweep<ChunkPasses> without(slots, alone, Seconds(0), ends.without_messages);
  with.run_all();
  without.run_all();
  return {std::move(with.run()), without.run().length};
}

}  // namespace shardwise
