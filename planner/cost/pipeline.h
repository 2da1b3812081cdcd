#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "planner/cost/pipeline_slots.h"
#include "planner/spec/units.h"

namespace shardwise {

/// Stream time of a chunk of a stage for one micro-batch.
struct ChunkTime {
  Seconds forward;
  Seconds backward;         // recompute and weight gradients included
  Seconds weight_gradient;  // part of `backward` that zero-bubble schedules move

  Seconds of(LayerPart part) const {
    if (part == LayerPart::forward) return forward;
    if (part == LayerPart::backward_weight) return weight_gradient;
    return part == LayerPart::backward_input ? backward - weight_gradient : backward;
  }
};

/// When a chunk of a stage begins its first pass and ends its last, and which that is.
struct ChunkSpan {
  Seconds begin;
  Seconds end;
  LayerPart last = LayerPart::backward;
};

/// A pipeline's passes of a step, first to last.
struct PipelineRun {
  Seconds length;
  std::vector<ChunkSpan> spans;  // by stage x chunks + chunk
};

/// Passes that take as long as their chunks, one after the other on each stage.
class ChunkPasses {
 public:
  /// \param chunks  by stage x chunks + chunk; outlive this
  ChunkPasses(const PipelineSlots& slots, std::span<const ChunkTime> chunks)
      : per_stage_(static_cast<std::size_t>(slots.chunks)),
        chunks_(chunks),
        free_(static_cast<std::size_t>(slots.stages)) {}
  double pass(const PipelineSlots::Slot& slot, double ready, ChunkSpan& span) {
    const auto stage = static_cast<std::size_t>(slot.stage);
    const std::size_t place = stage * per_stage_ + static_cast<std::size_t>(slot.chunk);
    const double begin = std::max(ready, free_[stage]);
    if (slot.first) span.begin = Seconds(begin);
    return free_[stage] = begin + chunks_[place].of(slot.part).value();
  }

 private:
  std::size_t per_stage_;
  std::span<const ChunkTime> chunks_;
  std::vector<double> free_;  // by stage: end of its last pass
};

/// The longest path through the passes and messages of a schedule: a pass begins once the pass
/// before it on its stage has ended and what it is handed has arrived; a message once it is made,
/// the message before it has left, and its receiver has nothing else to receive. With uniform
/// stages that is the bubble of the schedule's paper: tests/planner/cost/time_pipeline_test.cc.
/// Time and space of a sweep grow with the slots. \param passes  `double pass(slot, ready, span)`
/// gives when a pass ends that is handed all it
///                waits for at `ready`, and fills span.begin on the first of its chunk
/// \param hop     one message
template <class Passes>
PipelineRun sweep_pipeline(const PipelineSlots& slots, Passes& passes, Seconds hop) {
  PipelineRun run;
  const auto p = static_cast<std::size_t>(slots.stages);
  const auto per_stage = static_cast<std::size_t>(slots.chunks);
  run.spans.resize(p * per_stage);
  std::vector<double> end(slots.slots.size());
  std::vector<double> sent(p);  // the last message of the stage is there
  std::vector<double> received(p);
  double length = 0;
  for (std::size_t i = 0; i < slots.slots.size(); ++i) {
    const PipelineSlots::Slot& slot = slots.slots[i];
    double ready = 0;
    for (const std::int32_t after : slot.after) {
      if (after >= 0) ready = std::max(ready, end[static_cast<std::size_t>(after)]);
    }
    const auto stage = static_cast<std::size_t>(slot.stage);
    if (slot.message) {
      double& into = received[static_cast<std::size_t>(slot.to)];
      end[i] = sent[stage] = into = std::max({ready, sent[stage], into}) + hop.value();
      continue;
    }
    ChunkSpan& span = run.spans[stage * per_stage + static_cast<std::size_t>(slot.chunk)];
    end[i] = passes.pass(slot, ready, span);
    span.end = Seconds(end[i]);
    span.last = slot.part;
    length = std::max(length, end[i]);
  }
  run.length = Seconds(length);
  return run;
}

/// \param chunks  by stage x chunks + chunk
PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop);

}  // namespace shardwise
