#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
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
  Seconds unswept;               // of that, micro-batches of one stage that take as long as others
  std::vector<ChunkSpan> spans;  // by stage x chunks + chunk
};

/// When passes and messages of a sweep ended, by slot. Kept from sweep to sweep it spares them
/// memory of their own.
struct SlotEnds {
  std::vector<double> end;
  std::vector<double> without_messages;  // of a run whose messages take no time
};

/// When the last operation so far of each stream of a stage has ended: its compute first, last what
/// its host issued.
using StreamClocks = std::array<double, 7>;

/// Whether micro-batches of one stage have come to take the same time.
class Settling {
 public:
  /// After a micro-batch.
  void add(const StreamClocks& clocks);
  bool settled() const { return settled_; }
  double period() const { return period_; }

 private:
  StreamClocks before_{};
  double period_ = 0;  // of compute
  bool settled_ = false;
};

/// What a pass waits for, in seconds from the step's begin.
struct PassTurn {
  double ready = 0;  // what it is handed is there
  double room = 0;   // so is the buffer that its last layer fills
  double read = 0;  // filled where messages take turns: its first layer has read what it was handed
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
  StreamClocks clocks() const { return {free_[0]}; }

 private:
  /// A pass that began `whole` before free_ says, with the buffers that it waits for and empties.
  void take_turns(const PipelineSlots::Slot& slot, PassTurn& turn, const ChunkEdges& edges,
                  double whole, ChunkSpan& span);

  std::size_t per_stage_;
  std::span<const ChunkTime> chunks_;
  std::span<const ChunkEdges> edges_;
  std::vector<double> free_;  // by stage: end of its last pass
};

/// The longest path through the passes and messages of a schedule: a pass begins once the pass
/// before it on its stage has ended and what it is handed has arrived; a message once it is made,
/// the message before it has left, and its receiver has nothing else to receive; where messages
/// take turns with buffers both wait for theirs. With uniform stages that is the bubble of the
/// schedule's paper: tests/planner/cost/time_pipeline_test.cc. Time and space of a sweep grow with
/// the slots.
template <class Passes>
class PipelineSweep {
 public:
  /// \param passes  `double pass(slot, PassTurn&, span)` gives when a pass ends, and fills
  ///                span.begin on the first of its chunk; `StageHosts& hosts()`, if it has any
  /// \param hop     one message
  /// \param end     filled by slot: when it ended
  /// \pre all outlive this
  PipelineSweep(const PipelineSlots& slots, Passes& passes, Seconds hop, std::vector<double>& end)
      : passes_(passes),
        room_(slots.room),
        hop_(hop.value()),
        per_stage_(static_cast<std::size_t>(slots.chunks)),
        end_(end),
        sent_(static_cast<std::size_t>(slots.stages)),
        received_(sent_.size()) {
    run_.spans.resize(sent_.size() * per_stage_);
    end_.resize(slots.slots.size());
    read_.resize(room_.size());
  }

  /// \param i  the next slot's number
  void take(const PipelineSlots::Slot& slot, std::size_t i) {
    double ready = 0;
    for (const std::int32_t after : slot.after) {
      if (after >= 0) ready = std::max(ready, end_[static_cast<std::size_t>(after)]);
    }
    const auto stage = static_cast<std::size_t>(slot.stage);
    const bool turns = !room_.empty() && room_[i] >= 0;
    if (slot.message) {
      if constexpr (kIssued) ready = std::max(ready, passes_.hosts().posted(slot));
      if (turns) ready = std::max(ready, read_[static_cast<std::size_t>(room_[i])]);
      double& into = received_[static_cast<std::size_t>(slot.to)];
      end_[i] = sent_[stage] = into = std::max({ready, sent_[stage], into}) + hop_;
      if constexpr (kIssued) passes_.hosts().arrived(slot, end_[i]);
      return;
    }
    ChunkSpan& span = run_.spans[stage * per_stage_ + static_cast<std::size_t>(slot.chunk)];
    PassTurn turn{ready, turns ? end_[static_cast<std::size_t>(room_[i])] : 0, 0};
    const double end = end_[i] = passes_.pass(slot, turn, span);
    if (!read_.empty()) read_[i] = turn.read;
    span.end = Seconds(end);
    span.last = slot.part;
    run_.length = std::max(run_.length, span.end);
  }
  PipelineRun& run() { return run_; }

 private:
  /// A host issues passes and messages.
  static constexpr bool kIssued = requires(Passes & passes) { passes.hosts(); };

  Passes& passes_;
  std::span<const std::int32_t> room_;
  double hop_;
  std::size_t per_stage_;
  std::vector<double>& end_;
  std::vector<double> sent_;  // the last message of the stage is there
  std::vector<double> received_;
  std::vector<double> read_;  // by slot, where messages take turns
  PipelineRun run_;
};

/// Micro-batches of one stage, which wait for nothing but what moves beside them: as soon as each
/// takes as long as the one before, the others are not swept through, but for the last one, whose
/// gradients leave. \param end  as of the last time that a slot ran
/// \param passes  besides has `StreamClocks clocks()`
template <class Passes>
PipelineRun sweep_one_stage(const PipelineSlots& slots, Passes& passes, std::vector<double>& end) {
  PipelineSweep<Passes> sweep(slots, passes, Seconds(0), end);
  PipelineRun& run = sweep.run();
  Settling settling;
  std::vector<ChunkSpan> first;
  std::int64_t left = slots.repeats;
  for (; left > 0 && !settling.settled(); --left) {
    for (std::size_t i = 0; i < slots.repeated; ++i) sweep.take(slots.slots[i], i);
    settling.add(passes.clocks());
    if (first.empty()) first = run.spans;
  }
  for (std::size_t i = slots.repeated; i < slots.slots.size(); ++i) sweep.take(slots.slots[i], i);
  run.unswept = Seconds(settling.period() * static_cast<double>(left));
  run.length += run.unswept;
  for (std::size_t c = 0; c < run.spans.size(); ++c) {
    if (!first.empty()) run.spans[c].begin = first[c].begin;
    run.spans[c].end += run.unswept;
  }
  return std::move(run);
}

/// All slots in turn.
template <class Passes>
PipelineRun sweep_pipeline(const PipelineSlots& slots, Passes& passes, Seconds hop,
                           std::vector<double>& end) {
  if (slots.stages == 1) return sweep_one_stage(slots, passes, end);
  PipelineSweep<Passes> sweep(slots, passes, hop, end);
  for (std::size_t i = 0; i < slots.slots.size(); ++i) sweep.take(slots.slots[i], i);
  return std::move(sweep.run());
}

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
