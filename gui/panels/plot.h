#pragma once

#include <string>

#include "gui/panels/ui.h"

namespace shardwise::view {

/// ImPlot's formatter of an axis: "12.3 ms" for 0.0123.
int seconds_label(double seconds, char* to, int size, void* unused);

/// What the plan is compared with, as a square at a point of the plot that is being drawn.
void mark_compared(Ui& ui, const std::string& probe, double x, double y);

}  // namespace shardwise::view
