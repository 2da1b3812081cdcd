#include "simulator/critical_path.h"

#include <algorithm>
#include <array>

namespace shardwise::sim {
namespace {

constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

/// Looks up what an operation may have waited for.
class Predecessors {
 public:
  explicit Predecessors(const Workload& work)
      : work_(work), on_stream_(work.operations, kNothing), partner_(work.operations, kNothing) {
    std::vector<std::size_t> seen(work.meetings, kNothing);
    for (const Actor& actor : work.actors) {
      const WorkProgram& program = work.programs[actor.program];
      for (std::size_t s = 0; s < kStreams; ++s) {
        for (std::uint32_t i = program.stream_begin[s]; i < program.stream_begin[s + 1]; ++i) {
          const WorkOp& op = program.operations[i];
          const std::size_t number = actor.base + op.index;
          if (i > program.stream_begin[s]) {
            on_stream_[number] = actor.base + program.operations[i - 1].index;
          }
          if (op.slot < 0) continue;
          const Slot& slot = work.slots[static_cast<std::size_t>(op.slot)];
          join(seen[slot.first_meeting + work.group_at(actor, slot)], number);
        }
      }
    }
  }

  /// Of the participants of a meeting, the one that came last; `number` itself for others.
  std::size_t latest_participant(std::size_t number, const Timeline& timeline) const {
    std::size_t latest = number;
    for (std::size_t other = partner_[number]; other != kNothing && other != number;
         other = partner_[other]) {
      if (timeline.start[other] > timeline.start[latest]) latest = other;
    }
    return latest;
  }

  /// What ended last of all that `number`, or the host that issued it, waited for.
  std::size_t before(std::size_t number, const Timeline& timeline) const {
    std::size_t last = on_stream_[number];
    const auto after =
        std::upper_bound(work_.actors.begin(), work_.actors.end(), number,
                         [](std::size_t value, const Actor& actor) { return value < actor.base; });
    const Actor& actor = *(after - 1);
    const StageProgram& stage = work_.program_of(actor);
    const std::size_t index = number - actor.base;
    const auto take = [&](std::uint32_t wait) {
      const std::size_t other = actor.base + wait;
      if (last == kNothing || timeline.end[other] > timeline.end[last]) last = other;
    };
    for (const std::uint32_t wait : stage.of(stage.operations[index].waits)) take(wait);
    const std::vector<std::uint32_t>& from = work_.programs[actor.program].issued_from;
    if (!from.empty() && from[index] != kFromBegin) take(from[index]);
    return last;
  }

 private:
  /// The participants of a meeting form a ring.
  void join(std::size_t& first, std::size_t number) {
    if (first == kNothing) {
      first = number;
      partner_[number] = number;
    } else {
      partner_[number] = partner_[first];
      partner_[first] = number;
    }
  }

  const Workload& work_;
  std::vector<std::size_t> on_stream_;
  std::vector<std::size_t> partner_;
};

}  // namespace

std::vector<std::size_t> critical_path(const Workload& work, const Timeline& timeline) {
  std::vector<std::size_t> path;
  if (timeline.end.empty()) return path;
  const Predecessors predecessors(work);
  auto at = static_cast<std::size_t>(std::max_element(timeline.end.begin(), timeline.end.end()) -
                                     timeline.end.begin());
  while (at != kNothing) {
    at = predecessors.latest_participant(at, timeline);
    path.push_back(at);
    at = predecessors.before(at, timeline);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace shardwise::sim
