#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "cli/verbs/other_program.h"

namespace shardwise::cli {
namespace {

void add_other(CLI::App& app, Run& run, const char* name, const char* text, OtherProgram other) {
  CLI::App* verb = app.add_subcommand(name, text);
  // Every word after it is the other program's, --help included.
  verb->set_help_flag();
  verb->prefix_command();
  verb->callback([&run, verb, other] {
    const std::vector<std::string> words = verb->remaining();
    run = [words, other] { return hand_over(other, words); };
  });
}

}  // namespace

void add_run(CLI::App& app, Run& run) {
  add_other(app, run, "run", "Train a plan on this machine with shardwise-run", kTrain);
}

void add_view(CLI::App& app, Run& run) {
  add_other(app, run, "view", "Look at a plan in a window, or draw it, with shardwise-view", kView);
}

}  // namespace shardwise::cli
