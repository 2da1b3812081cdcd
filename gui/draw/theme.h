#pragma once

#include <imgui.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/spec/report/memory_labels.h"
#include "planner/spec/text/table.h"
#include "simulator/drawing/palette.h"

namespace shardwise::view {

/// The colours of a window, light or dark, as "#0d1117". What pictures and reports share with it is
/// in simulator/drawing/palette.h.
struct Theme {
  sim::Ground ground = sim::Ground::dark;
  std::string_view page;     // behind the panels
  std::string_view panel;    // their ground
  std::string_view raised;   // buttons, sliders' beds
  std::string_view hovered;  // and where the pointer is
  std::string_view border;
  std::string_view grid;
  std::string_view text;
  std::string_view quiet;
  std::string_view accent;    // sliders' grabs, links
  std::string_view selected;  // ground of the selected row
  std::string_view good;
  std::string_view warning;
  std::string_view bad;

  std::string_view of(Tone tone) const;
  std::string_view of(sim::Paint paint) const;
  std::string_view of(MemoryGroup group) const;
};
const Theme& theme_of(bool dark);

/// "#0d1117" as ImGui has colours; `alpha` 0 to 1.
ImU32 colour(std::string_view hex, float alpha = 1);
/// A colour of another alpha.
ImU32 with_alpha(ImU32 ink, float alpha);
ImVec4 colour4(std::string_view hex, float alpha = 1);

/// Gives ImGui's and ImPlot's styles the theme and sizes of a scale; what is drawn afterwards has
/// them.
void apply(const Theme& theme, float scale);

}  // namespace shardwise::view
