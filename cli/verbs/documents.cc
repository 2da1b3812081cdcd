// The verbs `completion` and `man`: what packages install beside the program.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/completion.h"
#include "cli/texts/man_page.h"
#include "cli/verbs.h"

namespace shardwise::cli {

void add_documents(CLI::App& app, Run& run) {
  CLI::App* completion = app.add_subcommand("completion", "Print the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "Examples\n"
      "  source <(shardwise completion bash)\n"
      "  shardwise completion fish > ~/.config/fish/completions/shardwise.fish");
  completion->callback([&run, shell] {
    run = [shell] {
      fmt::print("{}", completion_script(*shell));
      return ExitCode::done;
    };
  });

  CLI::App* man = app.add_subcommand("man", "Print the manual page in roff");
  man->footer("Example\n  shardwise man | man -l -");
  man->callback([&run, &app] {
    run = [&app] {
      fmt::print("{}", man_page(app, SHARDWISE_VERSION));
      return ExitCode::done;
    };
  });
}

}  // namespace shardwise::cli
