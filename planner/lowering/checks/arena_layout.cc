#include "planner/lowering/checks/arena_layout.h"

#include <algorithm>
#include <numeric>

#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

bool lasts(const ArenaItem& item) { return item.first == kNone; }

/// Whether dependencies have one of two items end before the other begins.
bool apart(const DependencyOrder& order, const ArenaItem& a, const ArenaItem& b) {
  if (lasts(a) || lasts(b)) return false;
  return order.before(a.last, b.first) || order.before(b.last, a.first);
}

std::int64_t serial_peak(const StageProgram& program, std::span<const ArenaItem> items) {
  std::int64_t now = 0;
  std::vector<std::int64_t> begun(program.operations.size(), 0);
  std::vector<std::int64_t> ended(program.operations.size(), 0);
  for (const ArenaItem& item : items) {
    if (lasts(item)) {
      now += item.bytes;
    } else {
      begun[item.first] += item.bytes;
      ended[item.last] += item.bytes;
    }
  }
  std::int64_t most = now;
  for (std::size_t op = 0; op < begun.size(); ++op) {
    now += begun[op];
    most = std::max(most, now);
    now -= ended[op];
  }
  return most;
}

/// A piece of the arena that an item may not use.
struct Taken {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The lowest place for `bytes` beside what is taken.
std::int64_t lowest_place(std::vector<Taken>& taken, std::int64_t bytes) {
  std::ranges::sort(taken, {}, &Taken::begin);
  std::int64_t place = 0;
  for (const Taken& t : taken) {
    if (t.begin - place >= bytes) break;
    place = std::max(place, t.end);
  }
  return place;
}

}  // namespace

DependencyOrder::DependencyOrder(const StageProgram& program) {
  const std::size_t n = program.operations.size();
  position_.resize(n);
  stream_.resize(n);
  clock_.assign(n * streams_, 0);
  std::vector<std::int32_t> issued(streams_, 0);
  std::vector<OpId> last(streams_, kNone);
  for (OpId op = 0; op < n; ++op) {
    const ProgramOp& each = program.operations[op];
    const auto stream = static_cast<std::size_t>(each.stream);
    std::int32_t* clock = &clock_[op * streams_];
    const auto join = [&](OpId other) {
      const std::int32_t* theirs = &clock_[other * streams_];
      for (std::size_t s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], theirs[s]);
      const std::size_t on = stream_[other];
      clock[on] = std::max(clock[on], position_[other] + 1);
    };
    if (last[stream] != kNone) join(last[stream]);
    for (const std::uint32_t wait : program.of(each.waits)) {
      SHARDWISE_CHECK(wait < op, name_of(program, each));
      join(wait);
    }
    position_[op] = issued[stream]++;
    stream_[op] = static_cast<std::uint8_t>(stream);
    last[stream] = op;
  }
}

bool DependencyOrder::before(OpId a, OpId b) const {
  return clock_[b * streams_ + stream_[a]] > position_[a];
}

ArenaLayout arena_layout(const StageProgram& program, const DependencyOrder& order,
                         std::span<const ArenaItem> items) {
  ArenaLayout layout;
  layout.offsets.assign(items.size(), 0);
  layout.live_bytes = serial_peak(program, items);
  std::vector<std::size_t> turns(items.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  std::ranges::stable_sort(turns, [&](std::size_t a, std::size_t b) {
    if (lasts(items[a]) != lasts(items[b])) return lasts(items[a]);
    return !lasts(items[a]) && items[a].bytes > items[b].bytes;
  });
  std::vector<Taken> taken;
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    const ArenaItem& item = items[turns[turn]];
    taken.clear();
    for (std::size_t earlier = 0; earlier < turn; ++earlier) {
      const std::size_t other = turns[earlier];
      if (items[other].bytes == 0 || apart(order, items[other], item)) continue;
      const std::int64_t begin = layout.offsets[other];
      taken.push_back({begin, begin + round_up(items[other].bytes, kArenaAlignment)});
    }
    const std::int64_t bytes = round_up(item.bytes, kArenaAlignment);
    layout.offsets[turns[turn]] = lowest_place(taken, bytes);
    layout.bytes = std::max(layout.bytes, layout.offsets[turns[turn]] + bytes);
  }
  return layout;
}

}  // namespace shardwise
