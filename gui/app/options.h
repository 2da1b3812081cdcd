#pragma once

#include <optional>
#include <string>
#include <variant>

#include "gui/models/app_state.h"

namespace shardwise::view {

/// What shardwise-view was asked.
struct Options {
  std::string plan;
  std::string shot;    // a picture without a display; empty: a window
  std::string script;  // commands, one a line; empty: none
  Workspace workspace = Workspace::explore;
  int width = 1600;
  int height = 1000;
  float scale = 0;  // 0: the display's, or 1
  bool light = false;
  bool built_in_font = false;
};

/// The options, or the exit code of a command line that is wrong or asked for help: that was said.
std::variant<Options, int> read_options(int argc, const char* const* argv);

}  // namespace shardwise::view
