#pragma once

#include "gui/models/timeline/timeline_model.h"
#include "gui/panels/ui.h"

namespace shardwise::view {

/// Drawing below a lane of the plan's step: the same lane of what the plan is compared with, as
/// outlines, and below compute a strip of where the plan is busier (yellow) or less busy (blue).
struct LaneBeside {
  float lane = 0;   // pixels; 0 = nothing is compared
  float strip = 0;  // of lanes that compute
  float height(const Lane& of) const { return lane + (of.stream == Stream::compute ? strip : 0); }
};

LaneBeside lane_beside(const Ui& ui);

/// Draws it from `top`, between two edges that ui.state.range is between.
void draw_measured_lane(Ui& ui, const LaneBeside& beside, const Lane& predicted, float left,
                        float right, float top);

}  // namespace shardwise::view
