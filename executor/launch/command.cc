#include "executor/launch/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "planner/files/output_place.h"
#include "planner/files/program.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {

Diagnostic wrong_use(std::string flag, std::string message, std::string hint) {
  return {"command line", 0, 0, std::move(flag), std::move(message), std::move(hint)};
}

int refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return kBadInput;
}

std::string summary(const Diagnostics& problems) {
  const std::string text = to_string(problems.front());
  const std::string more =
      problems.size() > 1 ? fmt::format(" ({} problems)", problems.size()) : "";
  return text.substr(0, text.find('\n')) + more;
}

void say(const Failure& failure) {
  const std::string name = failure.kind == Failure::Kind::bad_input ? "" : "shardwise-run: ";
  print_error(name + failure.message);
}

void find_unwritable(const char* flag, const std::string& path, Diagnostics& problems) {
  const OutputPlace place = find_output(path);
  const std::filesystem::path folder = std::filesystem::absolute(place.path).parent_path();
  const auto wrong = [&](std::string message, std::string hint) {
    problems.push_back(wrong_use(flag, std::move(message), std::move(hint)));
  };
  if (place.kind == OutputPlace::Kind::folder) wrong(path + " is a folder", "");
  if (place.kind != OutputPlace::Kind::regular) return;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    wrong(fmt::format("{} is not a folder", folder.string()), "create it first");
  } else if (access(folder.c_str(), W_OK) != 0) {
    wrong(fmt::format("{} cannot be written to", folder.string()), "");
  }
}

}  // namespace shardwise::exec
