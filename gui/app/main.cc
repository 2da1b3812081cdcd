#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "gui/app/options.h"
#include "gui/app/script.h"
#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/app/window.h"
#include "planner/cost/legality.h"
#include "planner/files/output_place.h"
#include "planner/files/program.h"
#include "planner/spec/plan.h"
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
  Result<Plan> plan = read_plan(options.plan, check_plan);
  if (!plan) return refuse(plan.problems());
  const Diagnostics outputs = check_outputs({{"--shot", options.shot}},
                                            {{"PLAN", options.plan}, {"--script", options.script}});
  if (!outputs.empty()) return refuse(outputs);
  const bool window = options.shot.empty() && options.script.empty();
  Session session(*std::move(plan), window ? Timing::all : Timing::fitting);
  session.set_dark(!options.light);
  session.set_workspace(options.workspace);
  Stage stage(options.built_in_font ? FontChoice::built_in : FontChoice::installed,
              options.scale > 0 ? options.scale : 1);
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
