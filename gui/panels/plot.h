#pragma once

#include <string>
#include <vector>

#include "gui/panels/ui.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {

/// ImPlot's formatter of an axis: "12.3 ms" for 0.0123.
int seconds_label(double seconds, char* to, int size, void* unused);
/// Labels a whole number as above.
int count_label(double count, char* to, int size, void* unused);

/// A value of an axis that is round: "1,000", "2.5", "2.00 M".
std::string round_text(double value);

/// These marks alone on an axis of the plot that is set up, at their values over `unit`.
void set_ticks(int axis, const std::vector<sim::Tick>& ticks, double unit = 1);

/// Marks what the plan is compared with, as a square at a point of the plot that is being drawn.
void mark_compared(Ui& ui, const std::string& probe, double x, double y);

}  // namespace shardwise::view
