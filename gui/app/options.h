#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gui/models/window/app_state.h"
#include "planner/question/subject.h"

namespace shardwise::view {

/// Exit codes, beside kEnvironmentFailure.
inline constexpr int kDone = 0;
inline constexpr int kBadInput = 2;

/// Command line of shardwise-view.
struct Options {
  std::vector<std::string> files;  // a plan, then what it is compared with
  AskedJob asked;                  // in place of a plan: names or files of a model and a cluster
  std::string metrics;             // a file that a run writes; empty: none
  std::string shot;                // a picture without a display; empty: a window
  std::string script;              // commands, one a line; empty: none
  std::string layout;              // of panels, saved by view.save; empty: the usual one
  Workspace workspace = Workspace::explore;
  bool view_given = false;
  bool size_given = false;
  int width = 1600;
  int height = 1000;
  float scale = 0;  // 0: the display's, or 1
  bool light = false;
  bool built_in_font = false;
};

/// The options, or the exit code of a command line that is wrong or asked for help: that was said.
std::variant<Options, int> read_options(int argc, const char* const* argv);

}  // namespace shardwise::view
