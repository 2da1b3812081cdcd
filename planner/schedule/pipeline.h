#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "planner/schedule/pipeline_slots.h"
#include "planner/schedule/steady_state.h"
#include "planner/spec/text/units.h"

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
  std::int64_t swept = 0;        // slots, each time that one was: the work of the sweep
};

/// When a slot ended in two runs of the same slots.
struct TwoEnds {
  using Both = double __attribute__((vector_size(16)));
  Both both = {0, 0};
};

/// When passes and messages of a sweep ended, by slot. Kept from sweep to sweep it spares them
/// memory of their own.
struct SlotEnds {
  std::vector<double> end;
  std::vector<double> without_messages;  // of a run whose messages take no time
  std::vector<TwoEnds> both;             // of both, where they are swept in one walk
};

/// Times that a pass waits for, in seconds from the step's begin.
struct PassTurn {
  double ready = 0;  // its input is there
  double room = 0;   // so is the buffer that its last layer fills
  double read = 0;   // filled where messages take turns: its first layer has read its input
};

/// First and last layer of a chunk in forward order.
using ChunkEdges = std::array<ChunkTime, 2>;

/// Passes that take as long as their chunks, one after the other on each stage.
class ChunkPasses {
 public:
  /// \param chunks  by stage x chunks + chunk \param edges  the same, or none where messages take
  /// no turns; outlive this
  ChunkPasses(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
              std::span<const ChunkEdges> edges)
      : per_stage_(static_cast<std::size_t>(slots.chunks)),
        chunks_(chunks),
        edges_(edges),
        free_(static_cast<std::size_t>(slots.stages)) {}
  double pass(const PipelineSlots::Slot& slot, PassTurn& turn, ChunkSpan& span) {
    const auto stage = static_cast<std::size_t>(slot.stage);
    const std::size_t place = stage * per_stage_ + static_cast<std::size_t>(slot.chunk);
    const double begin = std::max(turn.ready, free_[stage]);
    if (slot.first) span.begin = Seconds(begin);
    const double whole = chunks_[place].of(slot.part).value();
    free_[stage] = begin + whole;
    if (!edges_.empty()) take_turns(slot, turn, edges_[place], whole, span);
    return free_[stage];
  }
  void visit(StateVisit& state) {
    for (double& free : free_) state.clock(free);
  }

 private:
  /// A pass that began `whole` before free_ says, with the buffers that it waits for and empties.
  void take_turns(const PipelineSlots::Slot& slot, PassTurn& turn, const ChunkEdges& edges,
                  double whole, ChunkSpan& span);

  std::size_t per_stage_;
  std::span<const ChunkTime> chunks_;
  std::span<const ChunkEdges> edges_;
  std::vector<double> free_;  // by stage: end of its last pass
};

/// \param chunks  by stage x chunks + chunk \pre messages take no turns
PipelineRun run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                         Seconds hop);

/// The same, and the length of a run whose messages take no time. \param edges  those of `chunks`
/// where messages take turns, else none
struct RunAndLength {
  PipelineRun run;
  Seconds without_messages;
};
RunAndLength run_pipeline(const PipelineSlots& slots, std::span<const ChunkTime> chunks,
                          std::span<const ChunkEdges> edges, Seconds hop, SlotEnds& ends);

}  // namespace shardwise
