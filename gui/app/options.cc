#include "gui/app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <vector>

#include "gui/models/window/left_view.h"
#include "planner/command/command_line.h"
#include "planner/command/command_words.h"
#include "planner/command/unknown_words.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

constexpr std::int64_t kLeastPixels = 64;
constexpr double kLeastScale = 0.5;
constexpr double kMostScale = 8;

constexpr const char* kExamples =
    "Examples\n"
    "  shardwise-view plan.json\n"
    "  shardwise-view plan.json measured.json\n"
    "  shardwise-view --model llama-3.1-70b --cluster dgx-h100 --gpus 64\n"
    "  shardwise-view --shot explore.png --view explore --size 1600x1000 plan.json\n"
    "\n"
    "Exit codes\n"
    "  0 done   2 bad input or use, or no display   3 environment failure";

/// "1600x1000". \returns empty, or what is wrong
std::string read_extent(const std::string& text, Options& options) {
  const std::size_t cross = text.find('x');
  std::int64_t width = 0;
  std::int64_t height = 0;
  const bool good = cross != std::string::npos &&
                    read_integer(text.substr(0, cross), kLeastPixels, kMostPixels, width).empty() &&
                    read_integer(text.substr(cross + 1), kLeastPixels, kMostPixels, height).empty();
  if (!good) {
    return fmt::format("--size: {} is not WIDTHxHEIGHT in pixels, {} to {} each", text,
                       kLeastPixels, kMostPixels);
  }
  options.width = static_cast<int>(width);
  options.height = static_cast<int>(height);
  return "";
}

std::string read_words(const std::string& view, const std::string& extent, const std::string& scale,
                       Options& options) {
  const auto* const workspace = std::ranges::find(kWorkspaceNames, view);
  if (workspace == kWorkspaceNames.end()) {
    return fmt::format("--view: {} is none of {}", view, fmt::join(kWorkspaceNames, ", "));
  }
  options.workspace = static_cast<Workspace>(workspace - kWorkspaceNames.begin());
  std::string problem = read_extent(extent, options);
  if (problem.empty() && !scale.empty()) {
    double factor = 0;
    problem = read_number(scale, kLeastScale, kMostScale, factor);
    if (!problem.empty()) return "--scale: " + problem;
    options.scale = static_cast<float>(factor);
  }
  return problem;
}

}  // namespace

std::variant<Options, int> read_options(int argc, const char* const* argv) {
  CLI::App app("Look at plans: what fits, how fast, and where the time goes", "shardwise-view");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("shardwise-view ") + SHARDWISE_VERSION);
  app.footer(kExamples);
  app.formatter(help_formatter());
  Options options;
  std::string view = "explore";
  std::string extent = "1600x1000";
  std::string scale;
  app.add_option("FILE", options.files,
                 "A plan.json, or a page of shardwise report; then a report, a trace or another "
                 "plan to compare it with")
      ->type_name("");
  const auto question = [&](const char* flag, std::string& value, const char* type,
                            const char* words) {
    app.add_option(flag, value, words)->type_name(type)->group("In place of a plan");
  };
  question("--model", options.asked.model, "NAME|FILE", "As shardwise plan takes it");
  question("--cluster", options.asked.cluster, "NAME|FILE", "The same");
  question("--gpus", options.asked.gpus, "N", "GPUs to train on [one node]");
  question("--engine", options.asked.engine, "NAME", "[the fastest that runs today]");
  question("--sequence-length", options.asked.texts["sequence_length"], "N",
           "Tokens of a sequence [4096]");
  question("--global-batch-size", options.asked.texts["global_batch_size"], "N",
           "Sequences of a step [about 4 Mi tokens]");
  app.add_option("--shot", options.shot, "Draw a picture without a display; - is standard output")
      ->type_name("FILE");
  app.add_option("--view", view, "explore, memory, timeline, mesh or scaling [explore]")
      ->type_name("NAME");
  app.add_option("--size", extent, "Of the window or the picture, in pixels [1600x1000]")
      ->type_name("WxH");
  app.add_option("--layout", options.layout, "Places of panels, as view.save wrote them")
      ->type_name("FILE");
  app.add_option("--metrics", options.metrics,
                 "Follow a run by the file of shardwise-run train --metrics")
      ->type_name("FILE");
  app.add_option("--scale", scale, "Size of text and lines [the display's, or 1]")
      ->type_name("NUMBER");
  app.add_option("--script", options.script,
                 "Run commands of a file, one a line, without a display")
      ->type_name("FILE");
  app.add_flag("--light", options.light, "Light colours");
  app.add_flag("--built-in-font", options.built_in_font, "Draw the same pixels on every machine");
  refuse_empty_values(app);

  const auto wrong = [](const std::string& mistake) {
    fmt::print(stderr, "shardwise-view: {}\n", mistake);
    return kBadInput;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    fmt::print("{}", text.str());
    return kDone;
  } catch (const CLI::ParseError& mistake) {
    const std::vector<std::string> unknown = unknown_words(app);
    if (!unknown.empty()) return wrong(unknown.front());
    return wrong(fmt::format("{} (see shardwise-view --help)", plain_mistake(mistake.what())));
  }
  options.view_given = app.count("--view") > 0;
  options.size_given = app.count("--size") > 0;
  const std::string problem = read_words(view, extent, scale, options);
  if (!problem.empty()) return wrong(problem);
  return options;
}

}  // namespace shardwise::view
