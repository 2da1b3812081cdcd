#include "simulator/clock/engine.h"

#include <algorithm>

namespace shardwise::sim {
namespace {

/// One stream of one actor: a queue that stands at its first operation that has not ended.
struct SweptLane {
  std::uint32_t actor = 0;
  std::uint32_t cursor = 0;  // of WorkProgram::operations
  std::uint32_t end = 0;
  std::int32_t next = kNobody;   // in the list of lanes that wait for the same thing
  double free_at = 0;            // end of the operation before the cursor
  bool waits_for_start = false;  // of the operation issued before
};

/// Ranks that wait for one another at a slot.
struct SweptMeeting {
  std::int32_t missing = 0;
  std::int32_t lanes = kNobody;  // those that have arrived
  double latest = 0;
  double duration = 0;  // the longest of the participants'
};

class Sweep {
 public:
  explicit Sweep(const Workload& work) : work_(work) {
    timeline_.start.assign(work.operations, kUnknownTime);
    timeline_.end.assign(work.operations, kUnknownTime);
    waiting_.assign(work.operations, kNobody);
    meetings_.resize(work.meetings);
    if (work.launch.in_issue_order) lane_of_.resize(work.actors.size() * kStreams, kNobody);
    for (std::uint32_t a = 0; a < work.actors.size(); ++a) add_lanes(a);
  }

  Timeline run(const std::stop_token& stop) {
    for (std::size_t l = lanes_.size(); l-- > 0;) runnable_.push_back(static_cast<int>(l));
    std::uint32_t turns = 0;
    while (!runnable_.empty()) {
      if (turns++ % kTurnsOfStop == 0 && stop.stop_requested()) {
        timeline_.stopped = true;
        return std::move(timeline_);
      }
      const std::int32_t lane = runnable_.back();
      runnable_.pop_back();
      advance(lane);
    }
    for (const SweptLane& lane : lanes_) {
      if (lane.cursor != lane.end) timeline_.stalled.push_back(number(lane));
    }
    return std::move(timeline_);
  }

 private:
  void add_lanes(std::uint32_t a) {
    const WorkProgram& program = work_.programs[work_.actors[a].program];
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::uint32_t begin = program.stream_begin[s];
      const std::uint32_t end = program.stream_begin[s + 1];
      if (begin == end) continue;
      if (!lane_of_.empty()) {
        lane_of_[a * kStreams + s] = static_cast<std::int32_t>(lanes_.size());
      }
      lanes_.push_back({a, begin, end});
    }
  }

  std::size_t number(const SweptLane& lane) const {
    const Actor& actor = work_.actors[lane.actor];
    return actor.base + work_.programs[actor.program].operations[lane.cursor].index;
  }

  /// Runs the operations of a lane until one waits for something that has no time yet.
  void advance(std::int32_t l) {
    SweptLane& lane = lanes_[static_cast<std::size_t>(l)];
    const Actor& actor = work_.actors[lane.actor];
    const WorkProgram& program = work_.programs[actor.program];
    const std::uint32_t* indices = program.program->indices.data();
    double* starts = timeline_.start.data() + actor.base;
    const double* ends = timeline_.end.data() + actor.base;
    while (lane.cursor != lane.end) {
      const WorkOp& op = program.operations[lane.cursor];
      double ready = lane.free_at;
      for (std::uint32_t w = op.waits.begin; w != op.waits.end; ++w) {
        const double ended = ends[indices[w]];
        if (ended < 0) return wait_for(actor.base + indices[w], l);
        ready = std::max(ready, ended);
      }
      double from = 0;
      if (!program.issued.empty()) {
        const std::uint32_t waited = program.issued_from[op.index];
        if (waited != kFromBegin) from = ends[waited];
        if (from < 0) return wait_for(actor.base + waited, l);
        ready = std::max(ready, from + program.issued[op.index]);
      }
      if (work_.launch.in_issue_order && op.index > 0) {
        const double before = starts[op.index - 1];
        lane.waits_for_start = before < 0;
        if (before < 0) return;
        ready = std::max(ready, before);
      }
      starts[op.index] = ready;
      if (work_.launch.in_issue_order) wake_next(lane.actor, *program.program, op.index);
      if (op.slot < 0) {
        double end = ready + work_.duration(lane.actor, op);
        if (!program.issued.empty()) end = std::max(end, from + program.issued_last[op.index]);
        finish(lane, end);
      } else if (!meet(l, op, ready)) {
        return;
      }
    }
  }

  void finish(SweptLane& lane, double end) {
    const std::size_t op = number(lane);
    timeline_.end[op] = end;
    lane.free_at = end;
    ++lane.cursor;
    for (std::int32_t l = waiting_[op]; l != kNobody; l = lanes_[static_cast<std::size_t>(l)].next)
      runnable_.push_back(l);
  }

  void wait_for(std::size_t op, std::int32_t l) {
    lanes_[static_cast<std::size_t>(l)].next = waiting_[op];
    waiting_[op] = l;
  }

  /// The lane of the next operation in issue order, should it wait for this one to start.
  void wake_next(std::uint32_t actor, const StageProgram& stage, std::uint32_t index) {
    if (index + 1 == stage.operations.size()) return;
    const auto stream = static_cast<std::size_t>(stage.operations[index + 1].stream);
    const std::int32_t l = lane_of_[actor * kStreams + stream];
    SweptLane& next = lanes_[static_cast<std::size_t>(l)];
    if (!next.waits_for_start || number(next) != work_.actors[actor].base + index + 1) return;
    next.waits_for_start = false;
    runnable_.push_back(l);
  }

  /// \returns whether everybody was there, and so the operation has ended
  bool meet(std::int32_t l, const WorkOp& op, double ready) {
    SweptLane& lane = lanes_[static_cast<std::size_t>(l)];
    const Slot& slot = work_.slots[static_cast<std::size_t>(op.slot)];
    const std::uint32_t group = work_.group_at(work_.actors[lane.actor], slot);
    SweptMeeting& meeting = meetings_[slot.first_meeting + group];
    if (meeting.lanes == kNobody && meeting.missing == 0) {
      meeting.missing = work_.participants(slot, group);
    }
    meeting.latest = std::max(meeting.latest, ready);
    meeting.duration = std::max(meeting.duration, work_.duration(lane.actor, op));
    if (--meeting.missing > 0) {
      lane.next = meeting.lanes;
      meeting.lanes = l;
      return false;
    }
    const double end = meeting.latest + meeting.duration;
    for (std::int32_t other = meeting.lanes; other != kNobody;) {
      SweptLane& their = lanes_[static_cast<std::size_t>(other)];
      const std::int32_t next = their.next;
      finish(their, end);
      runnable_.push_back(other);
      other = next;
    }
    finish(lane, end);
    return true;
  }

  const Workload& work_;
  Timeline timeline_;
  std::vector<SweptLane> lanes_;
  std::vector<std::int32_t> lane_of_;  // by actor and stream, where issue order matters
  std::vector<std::int32_t> waiting_;  // by operation: the first lane that waits for it
  std::vector<SweptMeeting> meetings_;
  std::vector<std::int32_t> runnable_;
};

}  // namespace

double Timeline::length() const {
  double last = 0;
  for (const double each : end) last = std::max(last, each);
  return last;
}

Timeline run_alone(const Workload& work, const std::stop_token& stop) {
  return Sweep(work).run(stop);
}

}  // namespace shardwise::sim
