#pragma once

#include <span>

#include "gui/models/timeline/timeline_model.h"
#include "gui/panels/timeline_drawing.h"
#include "gui/panels/ui.h"

namespace shardwise::view {

/// A lane that a frame drew.
struct DrawnLane {
  const Lane* lane = nullptr;
  float top = 0;
  float bottom = 0;
};

/// Where lanes are, and how far they scroll.
struct LaneField {
  float top = 0;
  float bottom = 0;
  float scroll = 0;       // of those that are not pinned, in units
  float most_scroll = 0;  // of it
};

/// Mouse on the timeline, as docs/viewer.md says; asks for commands.
/// \param parts  of the step that are drawn side by side: not none
void use_mouse(Ui& ui, std::span<const Canvas> parts, const LaneField& field,
               std::span<const DrawnLane> lanes, const StepLanes& step);

}  // namespace shardwise::view
