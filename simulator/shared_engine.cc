#include "simulator/shared_engine.h"

#include <algorithm>
#include <array>

#include "simulator/event_queue.h"
#include "simulator/sharing.h"

namespace shardwise::sim {
namespace {

constexpr double kUnknown = -1;
constexpr std::int32_t kNobody = -1;
enum class State : std::uint8_t { blocked, issued_later, arrived, running };

struct Lane {
  std::uint32_t actor = 0;
  std::uint32_t cursor = 0;
  std::uint32_t end = 0;
  std::int32_t next = kNobody;  // in a list of lanes that wait, or that meet
  State state = State::blocked;
  bool waits_for_start = false;
  double remaining = 0;  // seconds alone, at `since`
  double since = 0;
  double rate = 0;  // 1 = as fast as alone
};

struct Meeting {
  std::int32_t missing = 0;
  std::int32_t lanes = kNobody;
  std::int32_t leader = kNobody;  // its lane carries the due time
  double duration = 0;
  std::uint64_t settled = 0;  // in which round its rate was last found
};

class SharedRun {
 public:
  explicit SharedRun(const Workload& work)
      : work_(work),
        queue_(work.actors.size() * kStreams),
        loads_(work.actors.size()),
        demands_(work.links.size()) {
    timeline_.start.assign(work.operations, kUnknown);
    timeline_.end.assign(work.operations, kUnknown);
    waiting_.assign(work.operations, kNobody);
    meetings_.resize(work.meetings);
    is_dirty_.assign(work.actors.size(), 0);
    lanes_.resize(work.actors.size() * kStreams);
    for (std::uint32_t a = 0; a < work.actors.size(); ++a) {
      const WorkProgram& program = program_of(a);
      for (std::size_t s = 0; s < kStreams; ++s) {
        Lane& lane = lanes_[a * kStreams + s];
        lane.actor = a;
        lane.cursor = program.stream_begin[s];
        lane.end = program.stream_begin[s + 1];
      }
    }
  }

  Timeline run() {
    for (std::size_t l = 0; l < lanes_.size(); ++l) try_start(static_cast<std::int32_t>(l), 0);
    settle(0);
    while (!queue_.empty()) {
      const double now = queue_.time();
      while (!queue_.empty() && queue_.time() == now) {
        const std::int32_t lane = queue_.first();
        queue_.pop();
        due(lane, now);
      }
      settle(now);
    }
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      if (lanes_[l].cursor != lanes_[l].end) timeline_.stalled.push_back(number(lanes_[l]));
    }
    return std::move(timeline_);
  }

 private:
  const WorkProgram& program_of(std::uint32_t actor) const {
    return work_.programs[work_.actors[actor].program];
  }
  Lane& lane_at(std::int32_t l) { return lanes_[static_cast<std::size_t>(l)]; }
  const WorkOp& op_of(const Lane& lane) const {
    return program_of(lane.actor).operations[lane.cursor];
  }
  std::size_t number(const Lane& lane) const {
    return work_.actors[lane.actor].base + op_of(lane).index;
  }
  const CostPrice& price_of(const Lane& lane) const {
    const WorkProgram& program = program_of(lane.actor);
    const ProgramOp& op = program.program->operations[op_of(lane).index];
    return program.prices[static_cast<std::size_t>(op.cost)];
  }
  static Stream stream_of(std::int32_t l) {
    return static_cast<Stream>(static_cast<std::size_t>(l) % kStreams);
  }

  void mark(std::uint32_t actor) {
    if (is_dirty_[actor] != 0) return;
    is_dirty_[actor] = 1;
    dirty_.push_back(actor);
  }

  /// Starts the operation at the lane's cursor if all it waits for has ended.
  void try_start(std::int32_t l, double now) {
    Lane& lane = lane_at(l);
    if (lane.cursor == lane.end) return;
    const WorkProgram& program = program_of(lane.actor);
    const std::size_t base = work_.actors[lane.actor].base;
    const WorkOp& op = op_of(lane);
    for (std::uint32_t w = op.waits.begin; w != op.waits.end; ++w) {
      const std::size_t other = base + program.program->indices[w];
      if (timeline_.end[other] >= 0) continue;
      lane.next = waiting_[other];
      waiting_[other] = l;
      return;
    }
    if (work_.launch.in_issue_order && op.index > 0) {
      lane.waits_for_start = timeline_.start[base + op.index - 1] < 0;
      if (lane.waits_for_start) return;
    }
    if (!program.issued.empty() && program.issued[op.index] > now) {
      lane.state = State::issued_later;
      queue_.set(l, program.issued[op.index]);
      return;
    }
    start(l, now);
  }

  void start(std::int32_t l, double now) {
    const Lane& lane = lane_at(l);
    const WorkOp& op = op_of(lane);
    timeline_.start[number(lane)] = now;
    if (op.slot < 0) {
      move(l, work_.duration(lane.actor, op), now);
    } else {
      arrive(l, op, now);
    }
    if (work_.launch.in_issue_order) start_next(lane.actor, op.index, now);
  }

  /// The operation issued after `index`, should it wait for its start.
  void start_next(std::uint32_t actor, std::uint32_t index, double now) {
    const StageProgram& stage = *program_of(actor).program;
    if (index + 1 == stage.operations.size()) return;
    const auto stream = static_cast<std::size_t>(stage.operations[index + 1].stream);
    Lane& next = lanes_[actor * kStreams + stream];
    if (!next.waits_for_start || op_of(next).index != index + 1) return;
    next.waits_for_start = false;
    try_start(static_cast<std::int32_t>(actor * kStreams + stream), now);
  }

  void arrive(std::int32_t l, const WorkOp& op, double now) {
    Lane& lane = lane_at(l);
    Meeting& meeting = meeting_of(lane, op);
    if (meeting.lanes == kNobody) {
      const Slot& slot = work_.slots[static_cast<std::size_t>(op.slot)];
      meeting.missing = work_.participants(slot, work_.group_at(work_.actors[lane.actor], slot));
      meeting.leader = l;
    }
    lane.state = State::arrived;
    lane.next = meeting.lanes;
    meeting.lanes = l;
    meeting.duration = std::max(meeting.duration, work_.duration(lane.actor, op));
    if (--meeting.missing > 0) return;
    for (std::int32_t each = meeting.lanes; each != kNobody; each = lane_at(each).next) {
      move(each, meeting.duration, now);
    }
  }
  Meeting& meeting_of(const Lane& lane, const WorkOp& op) {
    const Slot& slot = work_.slots[static_cast<std::size_t>(op.slot)];
    return meetings_[slot.first_meeting + work_.group_at(work_.actors[lane.actor], slot)];
  }

  void move(std::int32_t l, double duration, double now) {
    Lane& lane = lane_at(l);
    lane.state = State::running;
    lane.remaining = duration;
    lane.since = now;
    lane.rate = 0;  // settle finds it
    mark(lane.actor);
  }

  void due(std::int32_t l, double now) {
    Lane& lane = lane_at(l);
    if (lane.state == State::issued_later) return start(l, now);
    const WorkOp& op = op_of(lane);
    if (op.slot >= 0) {
      std::int32_t each = meeting_of(lane, op).lanes;
      while (each != kNobody) {
        const std::int32_t next = lane_at(each).next;
        finish(each, now);
        each = next;
      }
      return;
    }
    const WorkProgram& program = program_of(lane.actor);
    if (!program.issued.empty() && program.issued_last[op.index] > now) {
      lane.remaining = 0;
      queue_.set(l, program.issued_last[op.index]);
      return;
    }
    finish(l, now);
  }

  void finish(std::int32_t l, double now) {
    Lane& lane = lane_at(l);
    const std::size_t op = number(lane);
    timeline_.end[op] = now;
    lane.state = State::blocked;
    ++lane.cursor;
    mark(lane.actor);
    for (std::int32_t waiter = waiting_[op]; waiter != kNobody;) {
      const std::int32_t next = lane_at(waiter).next;
      try_start(waiter, now);
      waiter = next;
    }
    try_start(l, now);
  }

  /// Finds the rates of everything on the ranks where something began or ended, and on those that
  /// share a crowded link with them.
  void settle(double now) {
    ++round_;
    const std::size_t changed = dirty_.size();
    for (std::size_t d = 0; d < changed; ++d) load(dirty_[d]);
    for (const std::uint32_t actor : dirty_) {
      is_dirty_[actor] = 0;
      for (std::size_t s = 0; s < kStreams; ++s) {
        const auto l = static_cast<std::int32_t>(actor * kStreams + s);
        if (lane_at(l).state == State::running) update(l, now);
      }
    }
    dirty_.clear();
  }

  /// Adds up what a rank asks for, on its own links and on those it shares.
  void load(std::uint32_t actor) {
    const Load before = loads_[actor];
    loads_[actor] = load_of(actor);
    const IndexRange uses = work_.actors[actor].links;
    for (std::uint32_t u = uses.begin; u != uses.end; ++u) {
      const LinkUse& use = work_.link_uses[u];
      const SharedLink& link = work_.links[use.link];
      const Demand& old = before.links[link.tier];
      const Demand& now = loads_[actor].links[link.tier];
      if (old == now) continue;
      Demand& demand = demands_[use.link];
      const bool was_crowded = demand.crowds(link.capacity);
      demand.out += use.ranks * (now.out - old.out);
      demand.in += use.ranks * (now.in - old.in);
      if (!was_crowded && !demand.crowds(link.capacity)) continue;
      for (std::uint32_t m = link.members.begin; m != link.members.end; ++m) {
        mark(work_.link_members[m]);
      }
    }
  }
  Load load_of(std::uint32_t actor) {
    Load load;
    for (std::size_t s = 0; s < kStreams; ++s) {
      const Lane& lane = lanes_[actor * kStreams + s];
      if (lane.state == State::running) load.add(static_cast<Stream>(s), price_of(lane));
    }
    return load;
  }

  /// Of one rank's part in an operation.
  double rate_of(std::int32_t l) {
    const Lane& lane = lane_at(l);
    const Load& load = loads_[lane.actor];
    const Stream stream = stream_of(l);
    const CostPrice& price = price_of(lane);
    if (computes(stream)) return load.compute_rate(price);
    double busiest = load.memory_crowding(price);
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      if (price.link_share[tier] == 0) continue;
      busiest = std::max(busiest, load.links[tier].crowding(stream, 1));
    }
    const IndexRange uses = work_.actors[lane.actor].links;
    for (std::uint32_t u = uses.begin; u != uses.end; ++u) {
      const SharedLink& link = work_.links[work_.link_uses[u].link];
      if (price.link_share[link.tier] == 0) continue;
      const Demand& demand = demands_[work_.link_uses[u].link];
      busiest = std::max(busiest, demand.crowding(stream, link.capacity));
    }
    return 1 / (busiest * detour(lane.actor, price));
  }
  /// How often longer a transfer takes where links of its node are gone.
  double detour(std::uint32_t actor, const CostPrice& price) const {
    if (work_.noise.link_delay.empty()) return 1;
    double longest = 1;
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      const double delay = price.link_share[tier] * work_.noise.link_delay[actor][tier];
      longest = std::max(longest, 1 + delay);
    }
    return longest;
  }

  void update(std::int32_t l, double now) {
    const WorkOp& op = op_of(lane_at(l));
    if (op.slot < 0) return set_rate(l, rate_of(l), now);
    Meeting& meeting = meeting_of(lane_at(l), op);
    if (meeting.settled == round_) return;
    meeting.settled = round_;
    double slowest = 1;
    for (std::int32_t each = meeting.lanes; each != kNobody; each = lane_at(each).next) {
      slowest = std::min(slowest, rate_of(each));
    }
    set_rate(meeting.leader, slowest, now);
  }

  /// An operation whose rate stays keeps its due time to the bit.
  void set_rate(std::int32_t l, double rate, double now) {
    Lane& lane = lane_at(l);
    if (rate == lane.rate) return;
    lane.remaining = std::max(0.0, lane.remaining - lane.rate * (now - lane.since));
    lane.since = now;
    lane.rate = rate;
    queue_.set(l, now + lane.remaining / rate);
  }

  const Workload& work_;
  Timeline timeline_;
  EventQueue queue_;
  std::vector<Lane> lanes_;  // kStreams of each actor
  std::vector<std::int32_t> waiting_;
  std::vector<Meeting> meetings_;
  std::vector<Load> loads_;
  std::vector<Demand> demands_;  // of shared links
  std::vector<std::uint32_t> dirty_;
  std::vector<std::uint8_t> is_dirty_;
  std::uint64_t round_ = 0;
};

}  // namespace

Timeline run_shared(const Workload& work) { return SharedRun(work).run(); }

}  // namespace shardwise::sim
