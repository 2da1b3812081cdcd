#include "planner/schedule/held_passes.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "planner/schedule/stages.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// Of the first `passes` of an interleaved direction, those of the `turn`-th chunk that it visits.
std::int64_t passes_of_turn(std::int64_t passes, std::int32_t pp, std::int32_t vpp,
                            std::int32_t turn) {
  const std::int64_t round = std::int64_t{pp} * vpp;
  const std::int64_t rest = passes % round - std::int64_t{turn} * pp;
  return passes / round * pp + std::clamp<std::int64_t>(rest, 0, pp);
}

/// The interleaved schedule of a stage: forward pass n begins when n - ahead passes are back.
struct Interleaved {
  std::int64_t pp;
  std::int64_t vpp;
  std::int64_t passes;  // of each direction
  std::int64_t ahead;
  std::int64_t round() const { return pp * vpp; }

  HeldPasses at(std::int64_t begun, std::int64_t back, std::int32_t chunk) const {
    HeldPasses held;
    held.chunk = chunk;
    held.pp = static_cast<std::int32_t>(pp);
    held.vpp = static_cast<std::int32_t>(vpp);
    held.begun = begun;
    held.back = back;
    return held;
  }
  /// While forward pass n runs, which is not counted.
  HeldPasses forward(std::int64_t n, std::int32_t chunk) const {
    return at(n, std::max<std::int64_t>(0, n - ahead), chunk);
  }
  /// While backward pass k runs: own is taken off what has begun.
  HeldPasses backward(std::int64_t k, std::int32_t chunk) const {
    HeldPasses held = at(std::min(k + ahead + 1, passes), k, chunk);
    held.own = -1;
    return held;
  }
};

std::int64_t next_multiple(std::int64_t n, std::int64_t of) { return (n / of + 1) * of; }

/// Forward passes of which one is the fullest. Those of the warm-up hold no more than those a round
/// later.
template <class Look>
void look_forward(const Interleaved& i, std::int32_t chunk, Look look) {
  const std::int64_t first = std::max<std::int64_t>(0, std::min(i.ahead, i.passes - i.round()));
  const std::int64_t end = std::min(i.ahead + i.round(), i.passes);
  // The turns of the chunk, of pp passes each.
  std::int64_t turn = first / i.round() * i.round() + chunk * i.pp;
  for (; turn < end; turn += i.round()) {
    const std::int64_t stop = std::min(turn + i.pp, end);
    for (std::int64_t n = std::max(turn, first); n < stop;) {
      // Until then each pass begins one of a chunk and brings back one of another.
      const std::int64_t change =
          n < i.ahead ? i.ahead : i.ahead + next_multiple(n - i.ahead, i.pp);
      const std::int64_t until = std::min(stop, change);
      look(i.forward(n, chunk));
      look(i.forward(until - 1, chunk));
      n = until;
    }
  }
}

/// What runs.
enum class Running : std::uint8_t { forward, backward, joining };

/// Backward passes from the k-th on of which one is the fullest. \pre they are of one turn
template <class Look>
void look_backward(const Interleaved& i, std::int32_t chunk, std::int64_t k, std::int64_t end,
                   Look look) {
  while (k < end) {
    std::int64_t until = end;
    const std::int64_t begun = k + i.ahead + 1;
    until = std::min(until, k + next_multiple(begun, i.pp) - begun);
    if (begun < i.passes) until = std::min(until, k + i.passes - begun);
    look(i.backward(k, chunk));
    look(i.backward(until - 1, chunk));
    k = until;
  }
}

/// Backward passes of which one is the fullest: of the first round, since nothing begins any more
/// in the last. That of the first micro-batch joins no others; the second round begins with one
/// like it.
template <class Look>
void look_backward(const Interleaved& i, std::int32_t chunk, Running what, Look look) {
  const std::int64_t first = (i.vpp - 1 - chunk) * i.pp;
  const bool joins = what == Running::joining;
  look_backward(i, chunk, joins ? first + 1 : first, first + i.pp, look);
  const std::int64_t again = first + i.round();
  if (joins && again < i.passes) look_backward(i, chunk, again, again + 1, look);
}

/// A stage with two chunks of a V: so many of the first and of the second besides the one running.
HeldPasses on_a_v(std::int32_t chunk, std::int64_t down, std::int64_t up) {
  HeldPasses held;
  held.chunk = chunk;
  held.own = chunk == 0 ? down : up;
  (chunk == 0 ? held.higher : held.lower) = chunk == 0 ? up : down;
  return held;
}

/// Calls `look` with what a stage holds while a pass of `chunk` runs, whenever that may be the
/// most.
template <class Look>
void look_at_held(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches,
                  std::int32_t chunk, Running what, Look look) {
  const std::int64_t p = layout.pp;
  // A joining pass finds one micro-batch gone.
  const std::int64_t gone = what == Running::joining ? 1 : 0;
  const std::int64_t m = num_microbatches;
  const std::int64_t s = stage;
  HeldPasses held;
  held.chunk = chunk;
  if (p == 1) {
    held.lower = 1;
    return look(held);
  }
  switch (layout.schedule) {
    case PipelineSchedule::one_f_one_b: {
      if (layout.vpp > 1) {
        Interleaved i = {p, layout.vpp, m * layout.vpp, 2 * (p - 1 - s) + (layout.vpp - 1) * p};
        i.ahead = std::min(i.ahead, i.passes);
        return what == Running::forward ? look_forward(i, chunk, look)
                                        : look_backward(i, chunk, what, look);
      }
      held.own = std::min(m - gone, p - s) - 1;
      break;
    }
    case PipelineSchedule::gpipe:
      held.own = m - gone - 1;
      break;
    case PipelineSchedule::looped_bfs:
      held.lower = m;
      held.own = m - gone - 1;
      break;
    case PipelineSchedule::zb_h1:
      held.own = std::min(m, p) - 1;
      break;
    case PipelineSchedule::zb_h2:
      held.own = std::min(m, 2 * p - 1) - 1;
      break;
    case PipelineSchedule::zb_v:
      held = on_a_v(chunk, 2 * p - 1 - s, s);
      break;
    case PipelineSchedule::dualpipe:
    case PipelineSchedule::dualpipe_v: {
      const std::int64_t ends = layout.schedule == PipelineSchedule::dualpipe ? p : 2 * p;
      held = chunk == 0 ? on_a_v(chunk, ends - 1 - s, s + 1) : on_a_v(chunk, ends - s, s);
      break;
    }
  }
  look(held);
}

}  // namespace

std::int64_t HeldPasses::of(std::int32_t which) const {
  if (vpp > 0) {
    return passes_of_turn(begun, pp, vpp, which) - passes_of_turn(back, pp, vpp, vpp - 1 - which) +
           (which == chunk ? own : 0);
  }
  return which < chunk ? lower : which == chunk ? own : higher;
}

SavedChunks::SavedChunks(std::span<const std::int64_t> saved) : sums_(saved.size() + 1) {
  std::partial_sum(saved.begin(), saved.end(), sums_.begin() + 1);
}

std::int64_t bytes_of(const HeldPasses& held, const SavedChunks& saved) {
  const std::int64_t own = held.own * saved.of(held.chunk, held.chunk + 1);
  if (held.vpp == 0) {
    return held.lower * saved.before(held.chunk) + own +
           held.higher * saved.of(held.chunk + 1, saved.chunks());
  }
  // Whole rounds, whole turns of the round that is under way, and passes of the turn that is.
  const std::int64_t v = held.vpp;
  SHARDWISE_CHECK(v == saved.chunks(), std::to_string(saved.chunks()));
  const std::int64_t round = v * held.pp;
  const std::int64_t up = held.begun % round / held.pp;
  const std::int64_t down = v - held.back % round / held.pp;
  const std::int64_t whole = (held.begun / round - held.back / round) * saved.before(v) +
                             saved.before(up) - saved.of(down, v);
  return whole * held.pp + held.begun % held.pp * saved.of(up, up + 1) -
         held.back % held.pp * saved.of(down - 1, down) + own;
}

InFlight micro_batches_in_flight(const Layout& layout, std::int32_t stage,
                                 std::int64_t num_microbatches) {
  InFlight flight;
  flight.chunks = chunks_of_stage(layout);
  const SavedChunks one(std::vector<std::int64_t>(static_cast<std::size_t>(flight.chunks), 1));
  for (std::int32_t c = 0; c < flight.chunks; ++c) {
    const HeldPasses others = held_passes(layout, stage, num_microbatches, c, false, one);
    flight.held = std::max(flight.held, bytes_of(others, one) + 1);
  }
  return flight;
}

namespace {

HeldPasses fullest_held(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches,
                        std::int32_t chunk, Running what, const SavedChunks& saved) {
  HeldPasses fullest;
  std::int64_t most = -1;
  look_at_held(layout, stage, num_microbatches, chunk, what, [&](const HeldPasses& held) {
    const std::int64_t bytes = bytes_of(held, saved);
    if (bytes <= most) return;
    most = bytes;
    fullest = held;
  });
  return fullest;
}

}  // namespace

HeldPasses held_passes(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches,
                       std::int32_t chunk, bool backward, const SavedChunks& saved) {
  return fullest_held(layout, stage, num_microbatches, chunk,
                      backward ? Running::backward : Running::forward, saved);
}

HeldPasses held_when_joining(const Layout& layout, std::int32_t stage,
                             std::int64_t num_microbatches, std::int32_t chunk,
                             const SavedChunks& saved) {
  return fullest_held(layout, stage, num_microbatches, chunk, Running::joining, saved);
}

HeldChoices::HeldChoices(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches,
                         std::span<const std::int32_t> alike) {
  std::vector<SavedChunks> ones;  // of each kind: 1 for its chunks, 0 for the others
  for (std::size_t c = 0; c < alike.size(); ++c) {
    if (alike[c] != static_cast<std::int32_t>(c)) continue;
    kinds_.push_back(alike[c]);
    std::vector<std::int64_t> one(alike.size());
    std::ranges::transform(alike, one.begin(), [&](std::int32_t like) { return like == alike[c]; });
    ones.emplace_back(one);
  }
  choices_.resize(kinds_.size());
  for (std::size_t c = 0; c < alike.size(); ++c) {
    const auto kind =
        static_cast<std::size_t>(std::ranges::find(kinds_, alike[c]) - kinds_.begin());
    for (const bool backward : {false, true}) {
      look_at_held(layout, stage, num_microbatches, static_cast<std::int32_t>(c),
                   backward ? Running::backward : Running::forward, [&](const HeldPasses& held) {
                     Counts counts;
                     for (const SavedChunks& one : ones) counts.push_back(bytes_of(held, one));
                     add(choices_[kind][backward ? 1 : 0], std::move(counts));
                   });
    }
  }
}

void HeldChoices::add(std::vector<Counts>& choices, Counts counts) {
  const auto covers = [](const Counts& a, const Counts& b) {
    return std::ranges::equal(a, b, std::ranges::greater_equal());
  };
  if (std::ranges::any_of(choices, [&](const Counts& each) { return covers(each, counts); }))
    return;
  std::erase_if(choices, [&](const Counts& each) { return covers(counts, each); });
  choices.push_back(std::move(counts));
}

std::int64_t HeldChoices::most(std::int32_t chunk, bool backward,
                               std::span<const std::int64_t> saved) const {
  const auto kind = static_cast<std::size_t>(std::ranges::find(kinds_, chunk) - kinds_.begin());
  std::int64_t most = 0;
  for (const Counts& counts : choices_[kind][backward ? 1 : 0]) {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      bytes += counts[k] * saved[static_cast<std::size_t>(kinds_[k])];
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace shardwise
