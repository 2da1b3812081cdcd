#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/command_line.h"
#include "planner/spec/command_words.h"
#include "planner/spec/nearest.h"
#include "planner/spec/utf8.h"

namespace shardwise::cli {
namespace {

constexpr const char* kExamples =
    "Examples\n"
    "  shardwise estimate --model llama-3.1-8b --cluster dgx-h100 \\\n"
    "      --zero-stage 3 --engine fsdp2\n"
    "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json\n"
    "\n"
    "Exit codes\n"
    "  0 done   1 nothing fits   2 bad input or use   3 the world broke";

/// "shardwise plan" when that verb was read before the mistake, else "shardwise".
std::string spoken_name(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) name += " " + verb->get_name();
  return name;
}

/// What is wrong with a word that the verb did not take.
std::string unknown_word(const CLI::App& app) {
  const CLI::App& verb = *app.get_subcommands().front();
  const std::vector<std::string> words = verb.remaining();
  const std::string word = words.empty() ? "" : words.front();
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const std::optional<std::string> near = nearest(word, flags);
  return fmt::format("unknown {} {} ({})", word.starts_with('-') ? "flag" : "argument", shown(word),
                     near ? fmt::format("did you mean {}?", *near)
                          : fmt::format("see {} --help", spoken_name(app)));
}

/// Why no verb was found in a command line that CLI11 accepted.
std::string missing_verb(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) return "no verb given (see shardwise --help)";
  if (words.front().starts_with('-')) {
    return fmt::format("unknown flag {} (see shardwise --help)", shown(words.front()));
  }
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  const std::optional<std::string> near = nearest(words.front(), verbs);
  return fmt::format("unknown verb {} ({})", shown(words.front()),
                     near ? fmt::format("did you mean {}?", *near) : "see shardwise --help");
}

}  // namespace

ExitCode run_command(int argc, const char* const* argv) {
  CLI::App app("Does it fit, how long does a step take, and why", "shardwise");
  app.set_version_flag("--version", std::string("shardwise ") + SHARDWISE_VERSION);
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kExamples);
  app.formatter(help_formatter());  // before the verbs, which take it over

  Run run;
  add_estimate(app, run);
  add_plan(app, run);
  add_simulate(app, run);
  add_run(app, run);
  add_compare(app, run);
  add_score(app, run);
  add_calibrate(app, run);
  add_size(app, run);
  add_list(app, run);
  refuse_empty_values(app);

  // Only the command itself: the verbs, added above, refuse what they do not know.
  app.allow_extras();
  try {
    app.parse(argc, argv);
    if (run) return run();
    fmt::print(stderr, "shardwise: {}\n", missing_verb(app));
    return ExitCode::bad_input;
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return ExitCode::done;
  } catch (const CLI::ExtrasError&) {
    fmt::print(stderr, "shardwise: {}\n", unknown_word(app));
    return ExitCode::bad_input;
  } catch (const CLI::ParseError& wrong) {
    fmt::print(stderr, "shardwise: {} (see {} --help)\n", plain_mistake(wrong.what()),
               spoken_name(app));
    return ExitCode::bad_input;
  } catch (const std::exception& broken) {
    fmt::print(stderr, "shardwise: {}\n", shown(broken.what(), 300));
    return ExitCode::world_broke;
  }
}

}  // namespace shardwise::cli
