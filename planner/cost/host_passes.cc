#include "planner/cost/host_passes.h"

#include <algorithm>
#include <span>

namespace shardwise {

HostPasses::HostPasses(const StageTimes& stages, const LeafContext& context,
                       std::vector<double>& copied)
    : pipeline_(stages.pipeline),
      stages_(static_cast<std::size_t>(pipeline_.slots->stages)),
      copied_(copied) {
  copied_.resize(pipeline_.slots->slots.size());
  for (const LayerPace& layer : pipeline_.layers) {
    Pace& pace = paces_.emplace_back();
    pace.compute = layer.time;
    pace.copy = (Bytes(layer.saved) / context.rules->cluster->host_link).value();
  }
}

double HostPasses::pass(const PipelineSlots::Slot& slot, PassTurn& turn, ChunkSpan& span) {
  const auto at = static_cast<std::size_t>(slot.stage);
  const std::size_t place =
      at * static_cast<std::size_t>(pipeline_.slots->chunks) + static_cast<std::size_t>(slot.chunk);
  const std::span<const PacedRun> runs = pipeline_.runs_of(place);
  HostStreams& stage = stages_[at];
  stage.compute = std::max({stage.compute, turn.ready, runs.size() == 1 ? turn.room : 0});
  if (slot.first) span.begin = Seconds(stage.compute);
  const auto layers = [&](const PacedRun& run) {
    const Pace& pace = paces_[static_cast<std::size_t>(run.kind)];
    const double each = pace.compute.of(slot.part).value();
    if (slot.part == LayerPart::backward_weight) {
      stage.compute += run.layers * each;
    } else if (slot.part == LayerPart::forward) {
      stage.forward(each, pace.copy, run.layers);
    } else {
      stage.backward(each, pace.copy, run.layers);
    }
  };
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (r + 1 == runs.size()) stage.compute = std::max(stage.compute, turn.room);
    layers(runs[slot.part == LayerPart::forward ? r : runs.size() - 1 - r]);
    if (r == 0) turn.read = stage.compute;
  }
  copied_[static_cast<std::size_t>(&slot - pipeline_.slots->slots.data())] = stage.host;
  return stage.compute;
}

Seconds exposed_copies(const StageTime& stage, const LeafContext& context) {
  // From the third micro-batch on each takes as long as the one before.
  constexpr std::int64_t kSettled = 3;
  const std::int64_t first = std::min(context.num_microbatches, kSettled);
  const auto kinds = static_cast<std::size_t>(stage.kinds);
  const auto copy = [&](const UnitTime& unit) {
    return (Bytes(unit.saved) / context.rules->cluster->host_link).value();
  };
  HostStreams streams;
  double before = 0;
  for (std::int64_t m = 0; m < first; ++m) {
    before = streams.compute;
    for (std::size_t i = 0; i < kinds; ++i) {
      const UnitTime& unit = stage.units[i];
      streams.forward(unit.forward.value(), copy(unit), unit.count);
    }
    for (std::size_t i = kinds; i-- > 0;) {
      const UnitTime& unit = stage.units[i];
      streams.backward(unit.backward.value(), copy(unit), unit.count);
    }
  }
  double busy = 0;
  for (std::size_t i = 0; i < kinds; ++i) {
    const UnitTime& unit = stage.units[i];
    busy += (unit.forward + unit.backward).value() * unit.count;
  }
  const auto all = static_cast<double>(context.num_microbatches);
  const double rest = (all - static_cast<double>(first)) * (streams.compute - before);
  return Seconds(std::max(0.0, streams.compute + rest - all * busy));
}

}  // namespace shardwise
