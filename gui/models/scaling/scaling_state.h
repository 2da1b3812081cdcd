#pragma once

#include "gui/models/scaling/scaling_model.h"

namespace shardwise::view {

/// State of the scaling workspace. It is searched once the workspace was opened.
struct ScalingState {
  ScalingRows rows = ScalingRows::sequence;
  ScalingColour colour = ScalingColour::mfu;
  ScalingMap map;       // of the question; cells become known nearest first
  bool paused = false;  // no more of them until people want it

  bool filled() const { return map.plan && !map.next(); }
};

}  // namespace shardwise::view
