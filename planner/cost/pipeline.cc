#include "planner/cost/pipeline.h"

#include <cmath>

namespace shardwise {

void Settling::add(const StreamClocks& clocks) {
  constexpr double kRounding = 1e-9;
  const double period = clocks[0] - before_[0];
  const auto same = [&](double seconds) {
    return std::abs(seconds - period) <= kRounding * period;
  };
  // Neither a stream that falls behind is settled, nor a first micro-batch. A host may run ahead.
  settled_ = same(period_);
  const std::size_t host = clocks.size() - 1;
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    const double moved = clocks[i] - before_[i];
    const bool ahead = i == host && moved < period;
    if (moved != 0 && !ahead && !same(moved)) settled_ = false;
  }
  period_ = period;
  before_ = clocks;
}

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
    PipelineRun run = sweep_one_stage(slots, passes, ends.end);
    const Seconds length = run.length;
    return {std::move(run), length};
  }
  ChunkPasses alone(slots, chunks, edges);
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
