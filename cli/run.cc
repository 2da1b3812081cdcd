#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/verbs.h"

namespace shardwise::cli {
namespace {

/// Another program of ours to which a verb hands over, so that neither loads the libraries of the
/// other's room.
struct Program {
  const char* name;
  const char* verb;      // its first argument, nullptr for none
  const char* built_by;  // the switch that builds it
};

/// Becomes it: the one beside this program or else the first on PATH.
ExitCode hand_over(const Program& other, const std::vector<std::string>& arguments) {
  std::string program = other.name;
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path beside = self.parent_path() / program;
  if (!unknown && std::filesystem::exists(beside, unknown)) program = beside.string();
  std::vector<std::string> words = {program};
  if (other.verb != nullptr) words.emplace_back(other.verb);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(program.c_str(), argv.data());
  fmt::print(stderr,
             "shardwise: {} is not installed: it is neither in this program's folder nor on PATH "
             "(build it with {}=on)\n",
             other.name, other.built_by);
  return ExitCode::world_broke;
}

void add_other(CLI::App& app, Run& run, const char* name, const char* text, Program other) {
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
  add_other(app, run, "run", "Train a plan on this machine with shardwise-run",
            {"shardwise-run", "train", "SHARDWISE_EXECUTOR"});
}

void add_view(CLI::App& app, Run& run) {
  add_other(app, run, "view", "Look at a plan in a window, or draw it, with shardwise-view",
            {"shardwise-view", nullptr, "SHARDWISE_GUI"});
}

}  // namespace shardwise::cli
