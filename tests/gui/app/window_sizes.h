#pragma once

#include <imgui.h>

namespace shardwise::view {

// Sizes of windows, in pixels.
inline constexpr ImVec2 kSmallWindow(1280, 800);
inline constexpr ImVec2 kWideWindow(1600, 1000);

}  // namespace shardwise::view
