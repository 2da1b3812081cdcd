#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "gui/app/opening.h"
#include "gui/app/options.h"
#include "gui/app/script.h"
#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/app/window.h"
#include "gui/models/compared.h"
#include "gui/models/left_view.h"
#include "planner/files/output_place.h"
#include "planner/files/program.h"
#include "planner/spec/reader.h"

namespace shardwise::view {
namespace {

constexpr int kDone = 0;
constexpr int kBadInput = 2;

int refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return kBadInput;
}

int run(int argc, const char* const* argv) {
  const auto read = read_options(argc, argv);
  if (const int* const code = std::get_if<int>(&read)) return *code;
  const Options& options = std::get<Options>(read);
  const Diagnostics outputs = check_outputs({{"--shot", options.shot}}, inputs_of(options));
  if (!outputs.empty()) return refuse(outputs);
  Result<Opening> opening = open_plan(options);
  if (!opening) return refuse(opening.problems());
  const bool window = options.shot.empty() && options.script.empty();
  Session session(std::move(opening->plan), window ? Timing::all : Timing::fitting);
  session.say(opening->note);
  if (!opening->metrics.empty()) session.follow(opening->metrics);
  if (!window) {
    session.settle();
    const std::string failure = session.take_failure();
    if (!failure.empty()) {
      fmt::print(stderr, "{}\n", failure);
      return kBadInput;
    }
  }
  if (window) {
    if (!opening->compared.empty()) session.open_compared(opening->compared);
  } else if (!opening->compared.empty()) {
    Result<Compared> other = read_compared(opening->compared);
    if (!other) return refuse(other.problems());
    session.compare_with(std::make_shared<const Compared>(*std::move(other)));
  }
  session.set_dark(!options.light);
  session.set_workspace(options.workspace);
  Stage stage(options.built_in_font ? FontChoice::built_in : FontChoice::installed,
              options.scale > 0 ? options.scale : 1);
  if (!options.layout.empty()) {
    const Result<LeftView> view = read_view(options.layout);
    if (!view) return refuse(view.problems());
    stage.place_panels(view->panels);
  }
  if (!stage.fonts().missing.empty()) {
    fmt::print(stderr, "shardwise-view: {} not found, the built-in font is used\n",
               stage.fonts().missing);
  }
  if (!options.script.empty()) {
    const Result<std::string> script = read_file(options.script);
    if (!script) return refuse(script.problems());
    const Diagnostics problems = run_script(stage, session, options, *script, options.script);
    if (!problems.empty()) return refuse(problems);
  }
  if (!options.shot.empty()) write_shot(stage, session, options);
  return window ? show_window(stage, session, options) : kDone;
}

}  // namespace
}  // namespace shardwise::view

int main(int argc, char** argv) {
  return shardwise::run_program("shardwise-view", [&] { return shardwise::view::run(argc, argv); });
}
