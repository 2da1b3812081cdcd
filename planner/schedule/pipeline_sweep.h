#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "planner/schedule/pipeline.h"
#include "planner/schedule/pipeline_slots.h"
#include "planner/schedule/steady_state.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// The longest path through the passes and messages of a schedule: a pass begins once the pass
/// before it on its stage has ended and its input has arrived; a message once it is made, the
/// message before it has left, and its receiver has nothing else to receive; where messages take
/// turns with buffers both wait for theirs. With uniform stages that is the bubble of the
/// schedule's paper: tests/planner/schedule/time_pipeline_test.cc. Time and space of a sweep grow
/// with the slots, not with how often a loop runs.
template <class Passes>
class PipelineSweep {
 public:
  /// \param passes  `double pass(slot, PassTurn&, span)` gives when a pass ends, and fills
  ///                span.begin on the first of its chunk; `void visit(StateVisit&)`;
  ///                `StageHosts& hosts()`, if it has any
  /// \param hop     one message
  /// \param end     filled by slot: when it ended, of a loop the last time
  /// \param stop    asked to, it leaves out the slots that are left; or none
  /// \pre all outlive this
  PipelineSweep(const PipelineSlots& slots, Passes& passes, Seconds hop, std::vector<double>& end,
                const std::stop_token* stop = nullptr)
      : slots_(slots),
        passes_(passes),
        hop_(hop.value()),
        stop_(stop),
        per_stage_(static_cast<std::size_t>(slots.chunks)),
        end_(end),
        read_(slots.room.size()) {
    state_.sent.resize(static_cast<std::size_t>(slots.stages));
    state_.received.resize(state_.sent.size());
    state_.run.spans.resize(state_.sent.size() * per_stage_);
    end_.resize(slots.slots.size());
  }

  /// The next slot.
  void take(std::size_t i) {
    const PipelineSlots::Slot& slot = slots_.slots[i];
    const std::span<const std::int32_t> room = slots_.room;
    ++state_.run.swept;
    double ready = 0;
    for (const std::int32_t after : slot.after) {
      if (after >= 0) ready = std::max(ready, end_[static_cast<std::size_t>(after)]);
    }
    const auto stage = static_cast<std::size_t>(slot.stage);
    const bool turns = !room.empty() && room[i] >= 0;
    if (slot.message) {
      if constexpr (kIssued) ready = std::max(ready, passes_.hosts().posted(slot));
      if (turns) ready = std::max(ready, read_[static_cast<std::size_t>(room[i])]);
      double& sent = state_.sent[stage];
      double& into = state_.received[static_cast<std::size_t>(slot.to)];
      end_[i] = sent = into = std::max({ready, sent, into}) + hop_;
      if constexpr (kIssued) passes_.hosts().arrived(slot, end_[i]);
      return;
    }
    ChunkSpan& span = state_.run.spans[stage * per_stage_ + static_cast<std::size_t>(slot.chunk)];
    PassTurn turn{ready, turns ? end_[static_cast<std::size_t>(room[i])] : 0, 0};
    const double end = end_[i] = passes_.pass(slot, turn, span);
    if (!read_.empty()) read_[i] = turn.read;
    span.end = Seconds(end);
    span.last = slot.part;
    state_.run.length = std::max(state_.run.length, span.end);
  }
  /// All slots in turn.
  void run_all() {
    std::size_t next = 0;
    for (const PipelineSlots::Loop& loop : slots_.loops) {
      for (; next < loop.end(); ++next) take(next);
      Looping timeline(*this, loop);
      Repetitions(timeline, kShortestPeriod + state_.sent.size()).run(loop.times - 1);
    }
    constexpr std::size_t kSeldom = 256;
    for (; next < slots_.slots.size(); ++next) {
      if (next % kSeldom == 0 && stop_ != nullptr && stop_->stop_requested()) return;
      take(next);
    }
  }
  PipelineRun& run() { return state_.run; }

 private:
  /// A host issues passes and messages.
  static constexpr bool kIssued = requires(Passes & passes) { passes.hosts(); };
  /// Repetitions: as many as a micro-batch takes to a stage and back at most.
  static constexpr std::size_t kShortestPeriod = 8;

  struct State {
    std::vector<double> sent;  // by stage: its last message is there
    std::vector<double> received;
    PipelineRun run;
  };

  /// The slots of a loop, again and again.
  class Looping {
   public:
    Looping(PipelineSweep& sweep, const PipelineSlots::Loop& loop) : sweep_(sweep), loop_(loop) {}

    void repeat() {
      // What was of this repetition is of the one before.
      for (std::size_t i = loop_.begin - loop_.window; i < loop_.begin; ++i) {
        sweep_.end_[i] = sweep_.end_[i + loop_.length];
        if (!sweep_.read_.empty()) sweep_.read_[i] = sweep_.read_[i + loop_.length];
      }
      if constexpr (kIssued) sweep_.passes_.hosts().repeat(loop_);
      for (std::size_t i = loop_.begin; i < loop_.end(); ++i) sweep_.take(i);
    }
    void visit(StateVisit& state) {
      for (double& sent : sweep_.state_.sent) state.clock(sent);
      for (double& received : sweep_.state_.received) state.clock(received);
      for (std::size_t i = loop_.end() - loop_.window; i < loop_.end(); ++i) {
        state.clock(sweep_.end_[i]);
        if (!sweep_.read_.empty()) state.clock(sweep_.read_[i]);
      }
      sweep_.passes_.visit(state);
      if constexpr (kIssued) sweep_.passes_.hosts().visit(state, loop_);
    }

    struct Saved {
      State state;
      Passes passes;
      std::vector<double> end;
      std::vector<double> read;
    };
    Saved save() const { return {sweep_.state_, sweep_.passes_, sweep_.end_, sweep_.read_}; }
    void restore(const Saved& saved) {
      const std::int64_t swept = sweep_.state_.run.swept;  // it was work
      sweep_.state_ = saved.state;
      sweep_.state_.run.swept = swept;
      sweep_.passes_ = saved.passes;
      sweep_.end_ = saved.end;
      sweep_.read_ = saved.read;
    }

   private:
    PipelineSweep& sweep_;
    const PipelineSlots::Loop& loop_;
  };

  const PipelineSlots& slots_;
  Passes& passes_;
  double hop_;
  const std::stop_token* stop_;
  std::size_t per_stage_;
  std::vector<double>& end_;
  std::vector<double> read_;  // by slot, where messages take turns
  State state_;
};

/// \param end  filled as PipelineSweep does
template <class Passes>
PipelineRun sweep_pipeline(const PipelineSlots& slots, Passes& passes, Seconds hop,
                           std::vector<double>& end, const std::stop_token* stop = nullptr) {
  PipelineSweep<Passes> sweep(slots, passes, hop, end, stop);
  sweep.run_all();
  return std::move(sweep.run());
}

}  // namespace shardwise
