#pragma once

#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pass_units.h"
#include "planner/schedule/schedule.h"

namespace shardwise {

/// Computing of one pass of a layer.
struct UnitTurn {
  LayerPart part = LayerPart::forward;
  bool first = false;              // it runs forward for the first time in the step
  bool last = false;               // and back for the last
  const PassUnit* next = nullptr;  // runs after it in the pass; none: nullptr
  const PassUnit* before = nullptr;
};

/// Seconds that a layer computes, slowed by the collectives of its neighbours: gathers for the next
/// one, and reductions of the one before.
double slowed_layer(const StreamRules& rules, const PassLosses& losses, const PassUnit& unit,
                    const UnitTurn& turn);

}  // namespace shardwise
