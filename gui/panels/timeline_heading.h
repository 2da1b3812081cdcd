#pragma once

#include "gui/models/timeline/timeline_model.h"
#include "gui/panels/ui.h"

namespace shardwise::view {

/// Draws the heading above the lanes of a step: what it is of, its colours, the span that is
/// exposed longest or what is measured, and what is missing.
void draw_step_heading(Ui& ui, const StepLanes& step);

}  // namespace shardwise::view
