#include "planner/cost/step/pipeline_path.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace shardwise {
namespace {

/// Follows what each pass and message waited for, from the end of a sweep to its begin.
class PathWalk {
 public:
  PathWalk(const PipelineTimes& pipeline, const PathTimes& times, std::span<const double> ends,
           bool copies)
      : pipeline_(pipeline),
        slots_(pipeline.slots->slots),
        times_(times),
        ends_(ends),
        copies_(copies),
        counts_(times.all().size()) {}

  PathCounts run() {
    Step step{static_cast<std::int32_t>(std::ranges::max_element(ends_) - ends_.begin())};
    while (step.slot >= 0) {
      step = slots_[index(step.slot)].message ? before_message(step.slot) : before_pass(step);
    }
    return std::move(counts_);
  }

 private:
  /// Where the path goes on: at the end of a slot, or of a pass's first layer.
  struct Step {
    std::int32_t slot = -1;
    bool first_layer = false;
  };

  static std::size_t index(std::int32_t at) { return static_cast<std::size_t>(at); }
  double end(std::int32_t at) const { return at < 0 ? 0 : ends_[index(at)]; }
  std::int32_t later(std::int32_t a, std::int32_t b) const { return end(a) < end(b) ? b : a; }

  std::int32_t room(std::int32_t at) const {
    const std::vector<std::int32_t>& rooms = pipeline_.slots->room;
    return rooms.empty() ? -1 : rooms[index(at)];
  }

  Step before_message(std::int32_t at) {
    const PipelineSlots::Slot& slot = slots_[index(at)];
    counts_[times_.message()] += 1;
    std::int32_t last = later(slot.after[0], slot.after[1]);
    bool sent = false;
    bool received = false;
    for (std::int32_t i = at; i-- > 0 && !(sent && received);) {
      const PipelineSlots::Slot& other = slots_[index(i)];
      if (!other.message) continue;
      const bool sends = !sent && other.stage == slot.stage;
      const bool receives = !received && other.to == slot.to;
      if (sends || receives) last = later(last, i);
      sent = sent || sends;
      received = received || receives;
    }
    const std::int32_t reader = room(at);
    if (reader >= 0 && read(reader) > end(last)) return {reader, true};
    return {last};
  }

  /// What a pass waits for: the one before it on its stage, or what it is handed.
  struct Before {
    std::int32_t slot = -1;
    bool turns = false;  // the stage turns from a forward to a backward pass
    double end = 0;
  };
  Before before(std::int32_t at) const {
    const PipelineSlots::Slot& slot = slots_[index(at)];
    std::int32_t own = at - 1;
    while (own >= 0 && (slots_[index(own)].message || slots_[index(own)].stage != slot.stage)) {
      --own;
    }
    Before last{own, own >= 0 && turns(own, at), end(own)};
    if (last.turns && copies_) last.end += copy(own) + copy(at);
    const std::int32_t handed = later(slot.after[0], slot.after[1]);
    if (end(handed) > last.end) return {handed, false, end(handed)};
    return last;
  }
  bool turns(std::int32_t from, std::int32_t to) const {
    const PipelineSlots::Slot& back = slots_[index(to)];
    return slots_[index(from)].part == LayerPart::forward && back.part != LayerPart::forward &&
           back.part != LayerPart::backward_weight && !runs_of(slots_[index(from)]).empty() &&
           !runs_of(back).empty();
  }
  /// Of the last layer of a pass's chunk, to the host or back.
  std::size_t copied(std::int32_t at) const {
    return times_.copy(index(runs_of(slots_[index(at)]).back().kind));
  }
  double copy(std::int32_t at) const { return times_.all()[copied(at)]; }

  /// Runs of layers of a pass, in forward order, and one of them in its own.
  std::span<const PacedRun> runs_of(const PipelineSlots::Slot& slot) const {
    return pipeline_.runs_of(index(slot.stage) * index(pipeline_.slots->chunks) +
                             index(slot.chunk));
  }
  const PacedRun& run_of(const PipelineSlots::Slot& slot, std::size_t r) const {
    const std::span<const PacedRun> runs = runs_of(slot);
    return runs[slot.part == LayerPart::forward ? r : runs.size() - 1 - r];
  }

  /// Whether a run is its pass's last, and waits for the buffer that it fills.
  bool waits(const PipelineSlots::Slot& slot, std::int32_t buffer, std::size_t r) const {
    return buffer >= 0 && r + 1 == runs_of(slot).size();
  }

  /// When the first layer of a pass has ended.
  double read(std::int32_t at) const {
    const PipelineSlots::Slot& slot = slots_[index(at)];
    double begin = before(at).end;
    if (waits(slot, room(at), 0)) begin = std::max(begin, end(room(at)));
    return begin + seconds(slot.part, run_of(slot, 0));
  }

  /// The layers of a pass, last to first.
  Step before_pass(const Step& step) {
    const PipelineSlots::Slot& slot = slots_[index(step.slot)];
    const Before last = before(step.slot);
    const std::int32_t buffer = room(step.slot);
    const std::size_t runs = step.first_layer ? 1 : runs_of(slot).size();
    double begin = last.end;  // of the last of these runs
    for (std::size_t r = 0; r + 1 < runs; ++r) begin += seconds(slot.part, run_of(slot, r));
    for (std::size_t r = runs; r-- > 0;) {
      count(slot.part, run_of(slot, r));
      if (waits(slot, buffer, r) && end(buffer) > begin) return {buffer};
    }
    if (last.turns) {
      counts_[copied(last.slot)] += 1;
      counts_[copied(step.slot)] += 1;
    }
    return {last.slot};
  }

  double seconds(LayerPart part, const PacedRun& run) const {
    const std::span<const double> all = times_.all();
    const auto kind = index(run.kind);
    if (part == LayerPart::forward) return run.layers * all[times_.forward(kind)];
    if (part == LayerPart::backward_weight) return run.layers * all[times_.weight_gradient(kind)];
    const double both = all[times_.backward(kind)];
    const bool half = part == LayerPart::backward_input;
    return run.layers * (half ? both - all[times_.weight_gradient(kind)] : both);
  }
  void count(LayerPart part, const PacedRun& run) {
    const auto kind = index(run.kind);
    if (part == LayerPart::forward) {
      counts_[times_.forward(kind)] += run.layers;
    } else if (part == LayerPart::backward_weight) {
      counts_[times_.weight_gradient(kind)] += run.layers;
    } else {
      counts_[times_.backward(kind)] += run.layers;
      if (part == LayerPart::backward_input) counts_[times_.weight_gradient(kind)] -= run.layers;
    }
  }

  const PipelineTimes& pipeline_;
  const std::vector<PipelineSlots::Slot>& slots_;
  const PathTimes& times_;
  std::span<const double> ends_;
  bool copies_;
  PathCounts counts_;
};

}  // namespace

PathTimes::PathTimes(std::span<const LayerPace> layers, Seconds hop, BytesPerSecond host_link)
    : kinds_(layers.size()) {
  seconds_.reserve(4 * kinds_ + 1);
  for (const LayerPace& layer : layers) {
    seconds_.push_back(layer.time.forward.value());
    seconds_.push_back(layer.time.backward.value());
    seconds_.push_back(layer.time.weight_gradient.value());
  }
  seconds_.push_back(hop.value());
  for (const LayerPace& layer : layers) {
    seconds_.push_back((Bytes(layer.saved) / host_link).value());
  }
}

PathCounts longest_path(const PipelineTimes& pipeline, const PathTimes& times,
                        std::span<const double> ends, bool copies) {
  return PathWalk(pipeline, times, ends, copies).run();
}

Seconds length_of(const PathCounts& path, std::span<const double> times) {
  return Seconds(std::inner_product(times.begin(), times.end(), path.begin(), 0.0));
}

Seconds KnownPaths::floor(std::span<const double> times) const {
  Seconds longest(0);
  for (const PathCounts& path : paths_) longest = std::max(longest, length_of(path, times));
  return longest;
}

bool KnownPaths::is_news(Seconds length, std::span<const double> times) const {
  constexpr double kNear = 1e-9;
  return length * (1 - kNear) > floor(times);
}

void KnownPaths::add(PathCounts path) {
  if (paths_.size() < kMost) {
    paths_.push_back(std::move(path));
  } else {
    paths_[added_ % kMost] = std::move(path);
  }
  ++added_;
}

}  // namespace shardwise
