#pragma once

#include <cstdint>
#include <string>

#include "gui/models/window/app_state.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// Most pixels of a window, along either side.
inline constexpr std::int64_t kMostPixels = 16'384;

/// State a window was left in, or is to be in: schema "shardwise.view/1".
struct LeftView {
  int width = 0;  // pixels; 0 = not said, as the next
  int height = 0;
  bool dark = true;
  Workspace workspace = Workspace::explore;
  std::string panels;  // their places, in ImGui's form
};

std::string to_json(const LeftView& view);

/// \returns the view, or everything wrong with the file
Result<LeftView> read_view(const std::string& path);

}  // namespace shardwise::view
