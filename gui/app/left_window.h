#pragma once

#include "gui/app/options.h"
#include "gui/app/stage.h"
#include "gui/models/session/session.h"
#include "gui/models/window/left_view.h"

namespace shardwise::view {

/// Where it is kept how a window was left: $XDG_STATE_HOME/shardwise/view.json, where a relative
/// path is ignored. Makes the folder. Empty where there is no place for it, or none that is this
/// user's alone (may_keep). Source: XDG Base Directory Specification 0.8.
std::string left_view_file();

/// Gives a window the size, colours, workspace and places of panels that it was left with, where
/// the command line says no others. A file that is none is ignored, and that is said.
void restore_view(const std::string& file, Stage& stage, Session& session, Options& options);

/// Keeps how a window is left: the whole file or nothing.
void keep_view(const std::string& file, const Stage& stage, const Session& session, int width,
               int height);

}  // namespace shardwise::view
