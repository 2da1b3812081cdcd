#include "executor/launch/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "executor/storage/durable_file.h"
#include "planner/spec/error.h"
#include "planner/spec/utf8.h"

namespace shardwise::exec {
namespace {

/// What CLI11 says, in one line.
std::string plain(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return shown(text, 300);
}

}  // namespace

CommandLine parse_line(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return CommandLine::run;
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return CommandLine::done;
  } catch (const CLI::ParseError& wrong) {
    const std::string& name = app.get_name();
    fmt::print(stderr, "{}: {} (see {} --help)\n", name, plain(wrong.what()), name);
    return CommandLine::wrong;
  }
}

int refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return kBadInput;
}

void find_unwritable(const char* flag, const std::string& path, Diagnostics& problems) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  const auto wrong = [&](std::string message, std::string hint) {
    problems.push_back({"command line", 0, 0, flag, std::move(message), std::move(hint)});
  };
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    wrong(fmt::format("{} is no folder", folder.string()), "make it first");
  } else if (access(folder.c_str(), W_OK) != 0) {
    wrong(fmt::format("{} cannot be written to", folder.string()), "");
  }
}

void write_text(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there)) {
    DurableFile file(path);
    file.write(text);
    file.finish();
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw IoError(fmt::format("{} cannot be written", path));
}

}  // namespace shardwise::exec
