#pragma once

#include "gui/app/options.h"
#include "gui/app/stage.h"
#include "gui/models/session/session.h"

namespace shardwise::view {

/// Shows a session until its window is closed. \returns the exit code: kNoDisplay, after one line
/// on standard error, where no window can be opened
int show_window(Stage& stage, Session& session, Options options);

}  // namespace shardwise::view
