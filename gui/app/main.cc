#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gui/app/opening.h"
#include "gui/app/options.h"
#include "gui/app/script.h"
#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/app/window.h"
#include "gui/models/compare/compared.h"
#include "gui/models/session/failure.h"
#include "gui/models/window/left_view.h"
#include "planner/files/atomic_file_set.h"
#include "planner/files/output_place.h"
#include "planner/files/program.h"
#include "planner/spec/json/reader.h"

namespace shardwise::view {
namespace {

int refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return kBadInput;
}

/// What the options name beside the question: a search would only be followed by what is wrong.
struct Named {
  LeftView view;
  std::string script;
};
Result<Named> read_named(const Options& options) {
  Named named;
  if (!options.layout.empty()) {
    Result<LeftView> view = read_view(options.layout);
    if (!view) return view.problems();
    named.view = *std::move(view);
  }
  if (!options.script.empty()) {
    Result<std::string> script = read_file(options.script);
    if (!script) return script.problems();
    named.script = *std::move(script);
  }
  if (!options.shot.empty()) try_file(options.shot);
  return named;
}

/// The session, with all that the options name in it.
/// \returns the exit code; kDone: it can be looked at
int fill(Session& session, const Opening& opening, bool window) {
  session.say(opening.note);
  if (!opening.metrics.empty()) session.follow(opening.metrics);
  if (window) {
    if (!opening.compared.empty()) session.open_compared(opening.compared);
    return kDone;
  }
  session.settle();
  if (const Failure failure = session.take_failure()) {
    fmt::print(stderr, "{}\n", failure.message);
    return failure.by_system ? kEnvironmentFailure : kBadInput;
  }
  if (!opening.compared.empty()) {
    Result<Compared> other = read_compared(opening.compared);
    if (!other) return refuse(other.problems());
    session.compare_with(std::make_shared<const Compared>(*std::move(other)));
  }
  return kDone;
}

/// \returns the exit code
int run_steps(Stage& stage, Session& session, const Options& options, const std::string& script) {
  const std::optional<ScriptFailure> failed =
      run_script(stage, session, options, script, options.script);
  if (!failed) return kDone;
  // What was done before that line stays done.
  fmt::print(stderr, "{}\nstopped at line {}\n", to_string(failed->problem), failed->problem.line);
  return failed->by_system ? kEnvironmentFailure : kBadInput;
}

int run(int argc, const char* const* argv) {
  const auto read = read_options(argc, argv);
  if (const int* const code = std::get_if<int>(&read)) return *code;
  const Options& options = std::get<Options>(read);
  const Diagnostics outputs = check_outputs({{"--shot", options.shot}}, inputs_of(options));
  if (!outputs.empty()) return refuse(outputs);
  const Result<Named> named = read_named(options);
  if (!named) return refuse(named.problems());
  Result<Opening> opening = open_plan(options);
  if (!opening) return refuse(opening.problems());
  const bool window = options.shot.empty() && options.script.empty();
  const bool picture = !window && options.script.empty();
  // A bound is no answer: what shows rows, or may act on them, waits for every time.
  const bool rows = !picture || options.workspace == Workspace::explore;
  Session session(opening->plan, rows ? Timing::all : Timing::fitting,
                  picture ? std::optional(options.workspace) : std::nullopt);
  session.files().keep(inputs_of(options));
  if (!opening->file.empty()) session.files().has_plan(opening->file, opening->plan);
  if (const int code = fill(session, *opening, window); code != kDone) return code;
  session.set_dark(!options.light);
  session.set_workspace(options.workspace);
  if (opening->start) session.toggle_start();
  Stage stage(options.built_in_font ? FontChoice::built_in : FontChoice::installed,
              options.scale > 0 ? options.scale : 1);
  if (!options.layout.empty()) stage.place_panels(named->view.panels);
  if (!stage.fonts().missing.empty()) {
    fmt::print(stderr, "shardwise-view: {} not found, the built-in font is used\n",
               stage.fonts().missing);
  }
  if (!options.script.empty()) {
    const int code = run_steps(stage, session, options, named->script);
    if (code != kDone) return code;
  }
  if (!options.shot.empty()) write_shot(stage, session, options);
  return window ? show_window(stage, session, options) : kDone;
}

}  // namespace
}  // namespace shardwise::view

int main(int argc, char** argv) {
  shardwise::keep_freed_memory();
  return shardwise::run_program("shardwise-view", [&] { return shardwise::view::run(argc, argv); });
}
