#include "planner/lowering/operands/model_units.h"

namespace shardwise {

ModelUnits model_units(const LoweringContext& context) {
  ModelUnits made;
  const std::int32_t stages = context.layout().pp;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    made.stages.push_back(state_units(context, stage));
  }
  for (std::size_t layer = 0; layer < context.plan->model.layers.size(); ++layer) {
    for (std::size_t stage = 0; stage < made.stages.size(); ++stage) {
      const StateUnits& units = made.stages[stage];
      for (const TensorPlace& place : units.places[layer]) {
        // A copy is a tensor of its head.
        const auto owner = static_cast<std::size_t>(units.tensor(place).layer);
        if (owner == layer) made.tensors.push_back({stage, place});
      }
    }
  }
  return made;
}

}  // namespace shardwise
