#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gui/app/options.h"
#include "gui/app/stage.h"
#include "gui/models/session/session.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// Where a script stopped.
struct ScriptFailure {
  Diagnostic problem;
  bool by_system = false;  // which would not read or write
};

/// Runs the lines of a script against a session without a display. A line is a command
/// ("table.sort memory") or an event:
///
///     click PROBE             press and release at its middle
///     drag PROBE X Y          press at its middle, move by X and Y pixels, release
///     move PROBE              the pointer to its middle
///     key CHORD               "Ctrl+K"
///     type TEXT
///     shot FILE               a picture
///     expect probe PROBE      stops with a problem where it is not on screen
///
/// Empty lines and lines that begin with # are skipped. Results of the worker are waited for after
/// each line. \returns what is wrong with the first line that failed, and by whom
std::optional<ScriptFailure> run_script(Stage& stage, Session& session, const Options& options,
                                        std::string_view text, const std::string& file);

}  // namespace shardwise::view
