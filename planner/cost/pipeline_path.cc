#include "planner/cost/pipeline_path.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "planner/cost/host_passes.h"

namespace shardwise {
namespace {

/// Follows what each pass and message waited for, from the end of a sweep to its begin.
class Walk {
 public:
  Walk(const PipelineTimes& pipeline, const PathTimes& times, std::span<const double> ends,
       std::span<const double> copied)
      : pipeline_(pipeline),
        slots_(pipeline.slots->slots),
        times_(times),
        ends_(ends),
        copied_(copied),
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

  /// Of a pass, what its layers wait for.
  struct Before {
    std::int32_t own = -1;   // the pass before it on its stage
    std::int32_t last = -1;  // that, or what it is handed
    HostStreams state;       // when it begins
  };
  Before before(std::int32_t at) const {
    const PipelineSlots::Slot& slot = slots_[index(at)];
    std::int32_t own = at - 1;
    while (own >= 0 && (slots_[index(own)].message || slots_[index(own)].stage != slot.stage)) {
      --own;
    }
    const std::int32_t handed = later(slot.after[0], slot.after[1]);
    const std::int32_t last = later(own, handed);
    return {own, last, {end(last), own >= 0 && !copied_.empty() ? copied_[index(own)] : 0}};
  }

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
    HostStreams state = before(at).state;
    if (waits(slot, room(at), 0)) state.compute = std::max(state.compute, end(room(at)));
    return after(slot.part, run_of(slot, 0), state).compute;
  }

  /// The layers of a pass, last to first.
  Step before_pass(const Step& step) {
    const PipelineSlots::Slot& slot = slots_[index(step.slot)];
    const Before begin = before(step.slot);
    const std::int32_t buffer = room(step.slot);
    const std::size_t runs = step.first_layer ? 1 : runs_of(slot).size();
    HostStreams state = begin.state;
    before_.clear();
    for (std::size_t r = 0; r < runs; ++r) {
      before_.push_back(state);
      if (waits(slot, buffer, r)) state.compute = std::max(state.compute, end(buffer));
      state = after(slot.part, run_of(slot, r), state);
    }
    for (std::size_t r = runs; r-- > 0;) {
      HostStreams from = before_[r];
      const bool waited = waits(slot, buffer, r) && end(buffer) > from.compute;
      if (waited) from.compute = end(buffer);
      back(slot.part, run_of(slot, r), from);
      if (waited && !on_host_) return {buffer};
    }
    return {on_host_ ? begin.own : begin.last};
  }

  double each(LayerPart part, std::size_t kind) const {
    const std::span<const double> all = times_.all();
    if (part == LayerPart::forward) return all[times_.forward(kind)];
    if (part == LayerPart::backward_weight) return all[times_.weight_gradient(kind)];
    const double both = all[times_.backward(kind)];
    return part == LayerPart::backward_input ? both - all[times_.weight_gradient(kind)] : both;
  }
  void count(LayerPart part, std::size_t kind, double layers) {
    if (part == LayerPart::forward) {
      counts_[times_.forward(kind)] += layers;
    } else if (part == LayerPart::backward_weight) {
      counts_[times_.weight_gradient(kind)] += layers;
    } else {
      counts_[times_.backward(kind)] += layers;
      if (part == LayerPart::backward_input) counts_[times_.weight_gradient(kind)] -= layers;
    }
  }

  /// As HostPasses::pass has it.
  HostStreams after(LayerPart part, const PacedRun& run, HostStreams streams) const {
    const double layer = each(part, index(run.kind));
    const double copy = copied_.empty() ? 0 : times_.all()[times_.copy(index(run.kind))];
    if (copied_.empty() || part == LayerPart::backward_weight) {
      streams.compute += run.layers * layer;
    } else if (part == LayerPart::forward) {
      streams.forward(layer, copy, run.layers);
    } else {
      streams.backward(layer, copy, run.layers);
    }
    return streams;
  }

  /// Layers and copies of a run that lie on the path, which goes on where the run began.
  void back(LayerPart part, const PacedRun& run, const HostStreams& s) {
    const auto kind = index(run.kind);
    const double n = run.layers;
    const bool copies = !copied_.empty() && part != LayerPart::backward_weight;
    if (!copies || on_host_ != (part == LayerPart::forward)) {
      // Nothing of the other stream is waited for.
      if (on_host_ && copies) counts_[times_.copy(kind)] += n;
      if (!on_host_) count(part, kind, n);
      return;
    }
    const double layer = each(part, kind);
    const double copy = times_.all()[times_.copy(kind)];
    const double own = on_host_ ? copy : layer;
    const double other = on_host_ ? layer : copy;
    const double began = on_host_ ? s.host : s.compute;
    const double other_began = on_host_ ? s.compute : s.host;
    double owns = n;
    double others = 0;
    const double stays = began + n * own;
    const double crosses_first = other_began + other + n * own;
    const double crosses_last = other_began + n * other + own;
    if (std::max(crosses_first, crosses_last) > stays) {
      others = crosses_last > crosses_first ? n : 1;
      owns = crosses_last > crosses_first ? 1 : n;
    }
    counts_[times_.copy(kind)] += on_host_ ? owns : others;
    count(part, kind, on_host_ ? others : owns);
    if (others > 0) on_host_ = !on_host_;
  }

  const PipelineTimes& pipeline_;
  const std::vector<PipelineSlots::Slot>& slots_;
  const PathTimes& times_;
  std::span<const double> ends_;
  std::span<const double> copied_;
  PathCounts counts_;
  bool on_host_ = false;  // the path is among copies, not passes
  std::vector<HostStreams> before_;
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
                        std::span<const double> ends, std::span<const double> copied) {
  return Walk(pipeline, times, ends, copied).run();
}

Seconds KnownPaths::floor(std::span<const double> times) const {
  double longest = 0;
  for (const PathCounts& path : paths_) {
    longest = std::max(longest, std::inner_product(times.begin(), times.end(), path.begin(), 0.0));
  }
  return Seconds(longest);
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
