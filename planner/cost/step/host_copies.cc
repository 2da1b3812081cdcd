#include "planner/cost/step/host_copies.h"

#include <algorithm>

namespace shardwise {

double host_copies(const PipelineSlots& slots) {
  double forward = 0;
  double put_off = 0;
  const auto count = [&](std::size_t begin, std::size_t end, double times) {
    for (std::size_t i = begin; i < end; ++i) {
      const PipelineSlots::Slot& slot = slots.slots[i];
      if (slot.message) continue;
      forward += slot.part == LayerPart::forward ? times : 0;
      put_off += slot.part == LayerPart::backward_weight ? times : 0;
    }
  };
  count(0, slots.slots.size(), 1);
  for (const PipelineSlots::Loop& loop : slots.loops) {
    count(loop.begin, loop.end(), static_cast<double>(loop.times - 1));
  }
  return 2 + (forward > 0 ? put_off / forward : 0);
}

Seconds exposed_copies(const StageTime& stage, const LeafContext& context) {
  double compute = 0;
  double host = 0;
  double busy = 0;
  HostPlaces places;
  const auto copy = [&](const UnitTime& unit) {
    return (Bytes(unit.saved) / context.rules->cluster->host_link).value();
  };
  const auto kinds = static_cast<std::size_t>(stage.kinds);
  for (std::size_t i = 0; i < kinds; ++i) {
    const UnitTime& unit = stage.units[i];
    busy += (unit.forward + unit.backward).value() * unit.count;
    for (int n = 0; n < unit.count; ++n) {
      if (unit.saved > 0) compute = std::max(compute, places.free());
      compute += unit.forward.value();
      if (unit.saved == 0) continue;
      host = std::max(host, compute) + copy(unit);
      places.take(host);
    }
  }
  for (std::size_t i = kinds; i-- > 0;) {
    const UnitTime& unit = stage.units[i];
    for (int n = 0; n < unit.count; ++n) {
      if (unit.saved > 0) host = std::max(host, places.free()) + copy(unit);
      compute = std::max(compute, host) + unit.backward.value();
      if (unit.saved > 0) places.take(compute);
    }
  }
  // Each micro-batch begins when all of the one before is back.
  const auto all = static_cast<double>(context.num_microbatches);
  return Seconds(std::max(0.0, all * (compute - busy)));
}

}  // namespace shardwise
