#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/verbs.h"

namespace shardwise::cli {
namespace {

/// Becomes `shardwise-run train`, the one beside this program or else the first on PATH, so that
/// neither program loads the libraries of the other's room.
ExitCode hand_over(const std::vector<std::string>& arguments) {
  std::string program = "shardwise-run";
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path beside = self.parent_path() / program;
  if (!unknown && std::filesystem::exists(beside, unknown)) program = beside.string();
  std::vector<std::string> words = {program, "train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(program.c_str(), argv.data());
  fmt::print(stderr,
             "shardwise: shardwise-run is not installed: it is neither in this program's folder "
             "nor on PATH (build it with SHARDWISE_EXECUTOR=on)\n");
  return ExitCode::world_broke;
}

}  // namespace

void add_run(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand("run", "Train a plan on this machine with shardwise-run");
  // Every word after it is the other program's, --help included.
  verb->set_help_flag();
  verb->prefix_command();
  verb->callback([&run, verb] {
    const std::vector<std::string> words = verb->remaining();
    run = [words] { return hand_over(words); };
  });
}

}  // namespace shardwise::cli
