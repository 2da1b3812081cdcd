#include "executor/launch/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "executor/launch/launcher.h"
#include "planner/files/output_place.h"
#include "planner/files/program.h"
#include "planner/spec/command_line.h"
#include "planner/spec/command_words.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
CommandLine parse_line(CLI::App& app, int argc, const char* const* argv) {
  const Result<Launcher> launcher = find_launcher();
  const bool speaks = !launcher || launcher->rank == 0;
  try {
    app.formatter(help_formatter());
    refuse_empty_values(app);
    app.parse(argc, argv);
    return CommandLine::run;
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    if (speaks) fmt::print("{}", text.str());
    return CommandLine::done;
  } catch (const CLI::ParseError& wrong) {
    const std::string& name = app.get_name();
    if (speaks) {
      fmt::print(stderr, "{}: {} (see {} --help)\n", name, plain_mistake(wrong.what()), name);
    }
    return CommandLine::wrong;
  }
}

int refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return kBadInput;
}

void say(const Failure& failure) {
  const std::string name = failure.kind == Failure::Kind::bad_input ? "" : "shardwise-run: ";
  print_error(name + failure.message);
}

void find_unwritable(const char* flag, const std::string& path, Diagnostics& problems) {
  const OutputPlace place = find_output(path);
  const std::filesystem::path folder = std::filesystem::absolute(place.path).parent_path();
  const auto wrong = [&](std::string message, std::string hint) {
    problems.push_back({"command line", 0, 0, flag, std::move(message), std::move(hint)});
  };
  if (place.kind == OutputPlace::Kind::folder) wrong(path + " is a folder", "");
  if (place.kind != OutputPlace::Kind::regular) return;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    wrong(fmt::format("{} is no folder", folder.string()), "make it first");
  } else if (access(folder.c_str(), W_OK) != 0) {
    wrong(fmt::format("{} cannot be written to", folder.string()), "");
  }
}

}  // namespace shardwise::exec
