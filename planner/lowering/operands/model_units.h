#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/lowering/operands/state_units.h"

namespace shardwise {

/// The units of every pipeline stage, and the model's tensors among them.
struct ModelUnits {
  /// Where a tensor of the model is.
  struct Place {
    std::size_t stage = 0;
    TensorPlace tensor;
  };

  std::vector<StateUnits> stages;
  /// Every tensor once, in the order of the model: a table that two stages have is the embedding's.
  std::vector<Place> tensors;

  const StateUnit& unit(const Place& place) const {
    return stages[place.stage].units[place.tensor.unit];
  }
  const UnitTensor& tensor(const Place& place) const {
    return stages[place.stage].tensor(place.tensor);
  }
};
ModelUnits model_units(const LoweringContext& context);

}  // namespace shardwise
