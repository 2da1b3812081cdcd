#include "planner/cost/pipeline.h"

#include <cmath>

namespace shardwise {

void Settling::add(const StreamClocks& clocks) {
  constexpr double kRounding = 1e-9;
  const double period = clocks[0] - before_[0];
  const auto same = [&](double seconds) {
    return std::abs(seconds - period) <= kRounding * period;
  };
  // Neither a stream that falls behind is settled, nor a first micro-batch.
  settled_ = same(period_);
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    const double moved = clocks[i] - before_[i];
    if (moved != 0 && !same(moved)) settled_ = false;
  }
  period_ = period;
  before_ = clocks;
}

PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop) {
  ChunkPasses passes(slots, chunks);
  std::vector<double> end;
  return sweep_pipeline(slots, passes, hop, end);
}

RunAndLength run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                          Seconds hop, SlotEnds& ends) {
  ChunkPasses passes(slots, chunks);
  if (slots.stages == 1) {
    PipelineRun run = sweep_one_stage(slots, passes, ends.end);
    const Seconds length = run.length;
    return {std::move(run), length};
  }
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
