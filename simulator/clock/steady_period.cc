#include "simulator/clock/steady_period.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace shardwise::sim {
namespace {

/// Of a period: so near are times that are equal but for rounding.
constexpr double kNear = 1e-10;

/// A stream of a rank. Numbers are of its operations, in their order.
struct Lane {
  std::span<const WorkOp> operations;
  std::size_t begin = 0;  // of the repeated part
  std::size_t end = 0;
  std::size_t each = 0;  // a period

  bool repeats() const { return begin < end; }
};

class Steadiness {
 public:
  Steadiness(const Workload& work, const Timeline& timeline, const InsideEnds& inside,
             std::span<const RepeatedPart> parts)
      : work_(work), timeline_(timeline), inside_(inside), parts_(parts) {}

  std::optional<double> period() {
    find_cut();
    if (!find_period()) return std::nullopt;
    for (const Actor& actor : work_.actors) {
      if (!repeats(actor)) return std::nullopt;
    }
    return period_;
  }

 private:
  const WorkProgram& program_of(const Actor& actor) const { return work_.programs[actor.program]; }
  const RepeatedPart& part_of(const Actor& actor) const { return parts_[actor.program]; }
  double start(const Actor& actor, const WorkOp& op) const {
    return timeline_.start[actor.base + op.index];
  }
  double end(const Actor& actor, const WorkOp& op) const {
    return timeline_.end[actor.base + op.index];
  }
  bool same(double later, double before) const {
    return std::abs(later - before - period_) <= kNear * period_;
  }
  bool after_cut(double time) const { return time >= cut_ - kNear * period_; }

  Lane lane_of(const Actor& actor, std::size_t stream) const {
    const WorkProgram& program = program_of(actor);
    const RepeatedPart& part = part_of(actor);
    const std::uint32_t first = program.stream_begin[stream];
    Lane lane;
    lane.operations =
        std::span(program.operations).subspan(first, program.stream_begin[stream + 1] - first);
    const auto at = [&lane](std::uint32_t index) {
      const auto found = std::ranges::lower_bound(lane.operations, index, {}, &WorkOp::index);
      return static_cast<std::size_t>(found - lane.operations.begin());
    };
    lane.begin = at(part.begin);
    lane.end = at(part.end);
    lane.each = lane.end - at(part.end - part.length);
    return lane;
  }

  /// Until then no rank has come to the end of its repeated part on any stream.
  void find_cut() {
    cut_ = std::numeric_limits<double>::infinity();
    for (const Actor& actor : work_.actors) {
      for (std::size_t s = 0; s < kStreams; ++s) {
        const Lane lane = lane_of(actor, s);
        if (lane.repeats()) cut_ = std::min(cut_, end(actor, lane.operations[lane.end - 1]));
      }
    }
  }

  /// The operation of a lane that runs or comes next at the cut. \pre it repeats
  std::size_t next(const Actor& actor, const Lane& lane) const {
    std::size_t at = lane.end - 1;
    while (at > 0 && end(actor, lane.operations[at - 1]) >= cut_) --at;
    return at;
  }

  bool find_period() {
    const Actor& actor = work_.actors.front();
    for (std::size_t s = 0; s < kStreams; ++s) {
      const Lane lane = lane_of(actor, s);
      if (!lane.repeats()) continue;
      const std::size_t at = next(actor, lane);
      if (at < lane.begin + lane.each + 1) return false;
      period_ =
          end(actor, lane.operations[at - 1]) - end(actor, lane.operations[at - 1 - lane.each]);
      return period_ > 0;
    }
    return false;
  }

  bool repeats(const Actor& actor) const {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const Lane lane = lane_of(actor, s);
      if (!(lane.repeats() ? repeats(actor, lane) : rests(actor, lane))) return false;
    }
    return host_repeats(actor) && inside_repeats(actor);
  }

  /// Of a lane with nothing to repeat: it stands between what comes before that and after it.
  bool rests(const Actor& actor, const Lane& lane) const {
    const bool over =
        lane.begin == 0 || end(actor, lane.operations[lane.begin - 1]) <= cut_ - period_;
    const bool later =
        lane.end == lane.operations.size() || after_cut(start(actor, lane.operations[lane.end]));
    return over && later;
  }

  /// What ran from a period before the cut, and a period before that.
  bool repeats(const Actor& actor, const Lane& lane) const {
    const std::size_t at = next(actor, lane);
    if (at < lane.begin + 2 * lane.each) return false;
    for (std::size_t i = at - lane.each; i <= at; ++i) {
      const WorkOp& op = lane.operations[i];
      const WorkOp& before = lane.operations[i - lane.each];
      if (op.index - before.index != part_of(actor).length) return false;
      const double began = start(actor, op);
      const double ended = end(actor, op);
      const bool starts = same(began, start(actor, before)) ||
                          (began >= cut_ && after_cut(start(actor, before) + period_));
      const bool ends = same(ended, end(actor, before)) ||
                        (ended >= cut_ && after_cut(end(actor, before) + period_));
      if (!starts || !ends) return false;
    }
    return true;
  }

  /// The host issues a period in no more time than it takes. Where it counts from the begin of the
  /// step, it is ahead of all that comes after the cut, or as far behind in every period.
  bool host_repeats(const Actor& actor) const {
    const WorkProgram& program = program_of(actor);
    if (program.issued.empty()) return true;
    const RepeatedPart& part = part_of(actor);
    const auto counts_on = [&](std::uint32_t op) {
      return program.issued_from[op] == kFromBegin || program.issued_from[op] < part.begin;
    };
    const bool on = counts_on(part.end - 1);
    const double paced =
        on ? program.issued[part.end - 1] - program.issued[part.end - 1 - part.length] : 0;
    if (on && paced > period_ * (1 + kNear)) return false;
    const bool gains = on && paced < period_ * (1 - kNear);
    const double near = kNear * period_;
    for (std::uint32_t op = part.begin; gains && op < program.issued.size(); ++op) {
      if (!counts_on(op) || !after_cut(timeline_.end[actor.base + op])) continue;
      const std::uint32_t from = program.issued_from[op];
      const double begun = from == kFromBegin ? 0 : timeline_.end[actor.base + from];
      if (timeline_.start[actor.base + op] <= begun + program.issued[op] + near) return false;
      if (timeline_.end[actor.base + op] <= begun + program.issued_last[op] + near) return false;
    }
    return true;
  }

  /// The transfers inside the passes of a rank, one after the other on a lane of their own.
  bool inside_repeats(const Actor& actor) const {
    if (inside_.empty()) return true;
    const std::vector<double>& ends =
        inside_[static_cast<std::size_t>(&actor - work_.actors.data())];
    const WorkProgram& program = program_of(actor);
    std::vector<std::uint32_t> of_op;
    std::size_t each = 0;
    for (const WorkOp& op : program.operations) {
      const IndexRange inside = program.prices[static_cast<std::size_t>(op.cost)].inside;
      const std::size_t count = inside.end - inside.begin;
      of_op.insert(of_op.end(), count, op.index);
      const RepeatedPart& part = part_of(actor);
      if (op.index < part.end && op.index >= part.end - part.length) each += count;
    }
    if (of_op.size() != ends.size()) return false;
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(ends, cut_) - ends.begin());
    if (each == 0) return at == 0 || ends[at - 1] <= cut_ - period_;
    if (at < 2 * each) return false;
    for (std::size_t i = at - each; i < at; ++i) {
      if (of_op[i - each] < part_of(actor).begin) return false;
      if (of_op[i] - of_op[i - each] != part_of(actor).length) return false;
      if (!same(ends[i], ends[i - each])) return false;
    }
    return after_cut(ends[at - each] + period_);
  }

  const Workload& work_;
  const Timeline& timeline_;
  const InsideEnds& inside_;
  std::span<const RepeatedPart> parts_;
  double cut_ = 0;     // the second moment
  double period_ = 0;  // since the first
};

}  // namespace

std::optional<double> steady_period(const Workload& work, const Timeline& timeline,
                                    const InsideEnds& inside, std::span<const RepeatedPart> parts) {
  return Steadiness(work, timeline, inside, parts).period();
}

}  // namespace shardwise::sim
