#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/verbs.h"
#include "planner/files/trusted_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::cli {
namespace {

/// Another program of ours to which a verb hands over, so that neither loads the libraries of the
/// other's room.
struct Program {
  const char* name;
  const char* verb;      // its first argument, nullptr for none
  const char* built_by;  // the switch that builds it
};

/// Where it may be: beside this program, else in the folders of PATH that are not relative to the
/// current one.
std::vector<std::string> folders_of_programs() {
  std::vector<std::string> folders;
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) folders.push_back(self.parent_path().string());
  const char* const search = std::getenv("PATH");
  std::string_view rest = search == nullptr ? "" : search;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (folder.starts_with('/')) folders.emplace_back(folder);
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
  }
  return folders;
}

/// Becomes it: the first that is there. One that is not to be trusted is not passed over for
/// another.
ExitCode hand_over(const Program& other, const std::vector<std::string>& arguments) {
  for (const std::string& folder : folders_of_programs()) {
    const TrustedFile program(folder, other.name);
    if (!program.exists()) continue;
    if (!program.refusal().empty()) throw IoError(program.refusal());
    std::vector<std::string> words = {program.path()};
    if (other.verb != nullptr) words.emplace_back(other.verb);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    program.run(argv.data());
    throw IoError(fmt::format("cannot start {}: {}", program.path(), std::strerror(errno)));
  }
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
