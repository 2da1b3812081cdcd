#include "simulator/clock/shared_engine.h"

#include <algorithm>
#include <array>
#include <bit>

#include "simulator/clock/event_queue.h"
#include "simulator/clock/rates.h"

namespace shardwise::sim {
namespace {

/// One stream of one rank: a queue that stands at its first operation that has not ended.
struct SharedLane {
  const WorkOp* at = nullptr;
  const WorkOp* end = nullptr;
  std::uint32_t actor = 0;
  std::uint32_t awaited = 0;      // of a blocked lane: the operation that it waits for
  bool issued_later = false;      // waits for the host
  bool waits_for_start = false;   // of the operation issued before
  bool waits_for_inside = false;  // of the transfers inside its operation
};

/// The transfers inside the layers of a rank, on a lane of their own.
struct Inside {
  struct Transfer {
    const CostPrice* price = nullptr;
    double seconds = 0;
  };
  std::int32_t lane = kNobody;
  std::int32_t of = kNobody;        // the lane of the layer that began last, until that has ended
  double rest = 0;                  // of that layer
  bool slowed = false;              // one of them was, since there were none
  std::vector<Transfer> transfers;  // in order
  std::size_t at = 0;               // the one that runs
  bool running() const { return at < transfers.size(); }
};

/// Where the operations of a rank are found.
struct RankView {
  const WorkProgram* program = nullptr;
  double* start = nullptr;  // of the timeline, by operation
  double* end = nullptr;
  std::uint64_t* ended = nullptr;  // a bit for each operation
  std::uint32_t first_lane = 0;
  std::uint32_t blocked = 0;  // a bit for each lane that waits for another
};

constexpr std::uint32_t kWordBits = 64;

class SharedRun {
 public:
  SharedRun(const Workload& work, InsideEnds* inside_ends)
      : work_(work),
        queue_(first_lanes(work)),
        rates_(work, queue_),
        ranks_(work.actors.size()),
        inside_(work.actors.size()),
        inside_ends_(inside_ends) {
    if (inside_ends_ != nullptr) inside_ends_->assign(work.actors.size(), {});
    timeline_.start.assign(work.operations, kUnknownTime);
    timeline_.end.assign(work.operations, kUnknownTime);
    std::size_t words = 0;
    for (const Actor& actor : work.actors) words += words_of(work.programs[actor.program]);
    ended_.assign(words, 0);
    words = 0;
    for (std::uint32_t a = 0; a < ranks_.size(); ++a) {
      add_rank(a, ended_.data() + words);
      words += words_of(*ranks_[a].program);
    }
  }

  Timeline run(const std::stop_token& stop) {
    for (std::size_t l = 0; l < lanes_.size(); ++l) try_start(static_cast<std::int32_t>(l), 0);
    rates_.settle(0);
    std::uint32_t turns = 0;
    while (!queue_.empty()) {
      if (turns++ % kTurnsOfStop == 0 && stop.stop_requested()) {
        timeline_.stopped = true;
        return std::move(timeline_);
      }
      const double now = queue_.time();
      queue_.take(due_);
      for (const std::int32_t lane : due_) due(lane, now);
      rates_.settle(now);
    }
    for (const SharedLane& lane : lanes_) {
      if (lane.at == lane.end) continue;
      timeline_.stalled.push_back(work_.actors[lane.actor].base + lane.at->index);
    }
    return std::move(timeline_);
  }

 private:
  static std::size_t words_of(const WorkProgram& program) {
    return (program.operations.size() + kWordBits - 1) / kWordBits;
  }
  static bool has_inside(const WorkProgram& program) {
    return std::ranges::any_of(program.prices, [](const CostPrice& price) {
      return price.inside.begin != price.inside.end;
    });
  }
  /// A rank has a lane for each stream on which it runs anything, and one for transfers inside
  /// layers. As EventQueue wants them.
  static std::vector<std::uint32_t> first_lanes(const Workload& work) {
    std::vector<std::uint32_t> lanes = {0};
    for (const Actor& actor : work.actors) {
      const auto& begin = work.programs[actor.program].stream_begin;
      lanes.push_back(lanes.back() + (has_inside(work.programs[actor.program]) ? 1U : 0U));
      for (std::size_t s = 0; s < kStreams; ++s) lanes.back() += begin[s] != begin[s + 1] ? 1U : 0U;
    }
    return lanes;
  }
  void add_rank(std::uint32_t a, std::uint64_t* ended) {
    const Actor& actor = work_.actors[a];
    const WorkProgram& program = work_.programs[actor.program];
    ranks_[a] = {&program, timeline_.start.data() + actor.base, timeline_.end.data() + actor.base,
                 ended, static_cast<std::uint32_t>(lanes_.size())};
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::uint32_t begin = program.stream_begin[s];
      const std::uint32_t end = program.stream_begin[s + 1];
      if (begin == end) continue;
      rates_.add_lane(a, static_cast<Stream>(s));
      lanes_.push_back({program.operations.data() + begin, program.operations.data() + end, a});
    }
    if (!has_inside(program)) return;
    inside_[a].lane =
        rates_.add_lane(a, Stream::tensor_parallel);  // a stream that moves, both ways
    lanes_.push_back({nullptr, nullptr, a});
  }

  SharedLane& lane_at(std::int32_t l) { return lanes_[static_cast<std::size_t>(l)]; }
  static bool has_ended(const RankView& rank, std::uint32_t op) {
    return (rank.ended[op / kWordBits] >> op % kWordBits & 1U) != 0;
  }
  const Slot& slot_of(const WorkOp& op) const {
    return work_.slots[static_cast<std::size_t>(op.slot)];
  }
  std::size_t meeting_of(const SharedLane& lane, const Slot& slot) const {
    return slot.first_meeting + work_.group_at(work_.actors[lane.actor], slot);
  }

  void wait_for(RankView& rank, std::int32_t l, std::uint32_t op) {
    lane_at(l).awaited = op;
    rank.blocked |= 1U << (static_cast<std::uint32_t>(l) - rank.first_lane);
  }

  /// Starts the operation at which the lane stands if all it waits for has ended.
  void try_start(std::int32_t l, double now) {
    SharedLane& lane = lane_at(l);
    if (lane.at == lane.end) return;
    RankView& rank = ranks_[lane.actor];
    const WorkOp& op = *lane.at;
    const std::vector<std::uint32_t>& indices = rank.program->program->indices;
    for (std::uint32_t w = op.waits.begin; w != op.waits.end; ++w) {
      if (has_ended(rank, indices[w])) continue;
      return wait_for(rank, l, indices[w]);
    }
    if (work_.launch.in_issue_order && op.index > 0) {
      lane.waits_for_start = rank.start[op.index - 1] < 0;
      if (lane.waits_for_start) return;
    }
    if (!rank.program->issued.empty()) {
      const std::uint32_t from = rank.program->issued_from[op.index];
      if (from != kFromBegin && !has_ended(rank, from)) return wait_for(rank, l, from);
      const double issued = host_from(rank, op.index) + rank.program->issued[op.index];
      lane.issued_later = issued > now;
      if (lane.issued_later) return queue_.set(lane.actor, l, issued);
    }
    start(l, now);
  }

  /// When the host began to count the times at which it issues an operation.
  static double host_from(const RankView& rank, std::uint32_t op) {
    const std::uint32_t from = rank.program->issued_from[op];
    return from == kFromBegin ? 0 : rank.end[from];
  }

  void start(std::int32_t l, double now) {
    const SharedLane& lane = lane_at(l);
    const WorkOp& op = *lane.at;
    const RankView& rank = ranks_[lane.actor];
    rank.start[op.index] = now;
    if (op.slot < 0) {
      const CostPrice& price = price_of(lane);
      const double seconds = work_.duration(lane.actor, op);
      rates_.begin(l, price, seconds, now);
      if (price.inside.begin != price.inside.end) begin_inside(l, price, seconds, now);
    } else {
      arrive(l, op, now);
    }
    if (work_.launch.in_issue_order) start_next(rank, op.index, now);
  }
  const CostPrice& price_of(const SharedLane& lane) const {
    return ranks_[lane.actor].program->prices[static_cast<std::size_t>(lane.at->cost)];
  }

  /// The transfers inside the layer that a lane began to run.
  void begin_inside(std::int32_t l, const CostPrice& price, double seconds, double now) {
    const SharedLane& lane = lane_at(l);
    const std::span<const CostPrice> prices = ranks_[lane.actor].program->prices;
    Inside& inside = inside_[lane.actor];
    const double longer = seconds / price.seconds;
    const bool idle = !inside.running();
    for (std::uint32_t i = price.inside.begin; i != price.inside.end; ++i) {
      inside.transfers.push_back({&prices[i], prices[i].seconds * longer});
    }
    inside.of = l;
    inside.rest = price.rest * longer;
    if (idle) move_inside(inside, now);
  }
  /// The next of them or, after the last, what the layer still has to run.
  void move_inside(Inside& inside, double now) {
    if (inside.running()) {
      const Inside::Transfer& next = inside.transfers[inside.at];
      return rates_.begin(inside.lane, *next.price, next.seconds, now);
    }
    inside.transfers.clear();
    inside.at = 0;
    if (inside.slowed && inside.of != kNobody) {
      SharedLane& lane = lane_at(inside.of);
      if (lane.waits_for_inside) {
        lane.waits_for_inside = false;
        rates_.begin(inside.of, price_of(lane), inside.rest, now);
      } else {
        rates_.at_least(inside.of, inside.rest, now);
      }
    }
    inside.slowed = false;
    inside.of = kNobody;
  }
  /// A layer whose transfers a crowded link holds up stands still until they have ended.
  bool held_up(std::int32_t l) {
    SharedLane& lane = lane_at(l);
    const Inside& inside = inside_[lane.actor];
    if (inside.of != l || !inside.running()) return false;
    if (!inside.slowed && !rates_.slowed(inside.lane)) return false;
    if (!lane.waits_for_inside) rates_.end(l);
    return lane.waits_for_inside = true;
  }

  /// The operation issued after `index`, should it wait for its start.
  void start_next(const RankView& rank, std::uint32_t index, double now) {
    const auto lanes = static_cast<std::uint32_t>(lanes_.size());
    const std::uint32_t actor = lanes_[rank.first_lane].actor;
    for (std::uint32_t l = rank.first_lane; l < lanes && lanes_[l].actor == actor; ++l) {
      SharedLane& next = lanes_[l];
      if (!next.waits_for_start || next.at->index != index + 1) continue;
      next.waits_for_start = false;
      return try_start(static_cast<std::int32_t>(l), now);
    }
  }

  /// The last who comes sets everybody in motion.
  void arrive(std::int32_t l, const WorkOp& op, double now) {
    const SharedLane& lane = lane_at(l);
    const Slot& slot = slot_of(op);
    const std::size_t number = meeting_of(lane, slot);
    Meeting& meeting = rates_.meeting(number);
    if (meeting.lanes == kNobody) {
      meeting.missing = work_.participants(slot, work_.group_at(work_.actors[lane.actor], slot));
      meeting.leader = l;
    }
    rates_.join(meeting, l);
    meeting.duration = std::max(meeting.duration, work_.duration(lane.actor, op));
    if (--meeting.missing > 0) return;
    for (std::int32_t each = meeting.lanes; each != kNobody; each = rates_.next_at_meeting(each)) {
      rates_.begin(each, price_of(lane_at(each)), number, now);
    }
  }

  void due(std::int32_t l, double now) {
    SharedLane& lane = lane_at(l);
    if (lane.issued_later) {
      lane.issued_later = false;
      return start(l, now);
    }
    Inside& inside = inside_[lane.actor];
    if (l == inside.lane) {
      if (inside_ends_ != nullptr) (*inside_ends_)[lane.actor].push_back(now);
      inside.slowed |= rates_.slowed(l);
      rates_.end(l);
      ++inside.at;
      return move_inside(inside, now);
    }
    const WorkOp& op = *lane.at;
    if (op.slot >= 0) {
      std::int32_t each = rates_.meeting(meeting_of(lane, slot_of(op))).lanes;
      while (each != kNobody) {
        const std::int32_t next = rates_.next_at_meeting(each);
        finish(each, now);
        each = next;
      }
      return;
    }
    if (held_up(l)) return;
    const RankView& rank = ranks_[lane.actor];
    if (!rank.program->issued.empty()) {
      const double issued = host_from(rank, op.index) + rank.program->issued_last[op.index];
      if (issued > now) return rates_.hold(l, issued);
    }
    finish(l, now);
  }

  void finish(std::int32_t l, double now) {
    SharedLane& lane = lane_at(l);
    RankView& rank = ranks_[lane.actor];
    const std::uint32_t op = lane.at->index;
    rank.end[op] = now;
    rank.ended[op / kWordBits] |= std::uint64_t{1} << op % kWordBits;
    ++lane.at;
    rates_.end(l);
    if (inside_[lane.actor].of == l) inside_[lane.actor].of = kNobody;
    for (std::uint32_t left = rank.blocked; left != 0; left &= left - 1) {
      const std::uint32_t other =
          rank.first_lane + static_cast<std::uint32_t>(std::countr_zero(left));
      if (lanes_[other].awaited != op) continue;
      rank.blocked &= ~(left & (~left + 1));
      try_start(static_cast<std::int32_t>(other), now);
    }
    try_start(l, now);
  }

  const Workload& work_;
  Timeline timeline_;
  EventQueue queue_;
  std::vector<std::int32_t> due_;
  Rates rates_;
  std::vector<SharedLane> lanes_;
  std::vector<RankView> ranks_;
  std::vector<Inside> inside_;  // by actor
  InsideEnds* inside_ends_;     // may be null
  std::vector<std::uint64_t> ended_;
};

}  // namespace

Timeline run_shared(const Workload& work, const std::stop_token& stop, InsideEnds* inside) {
  return SharedRun(work, inside).run(stop);
}

}  // namespace shardwise::sim
