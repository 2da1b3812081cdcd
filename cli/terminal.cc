#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace shardwise::cli {

bool wants_colour() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  const char* forbidden = std::getenv("NO_COLOR");
  if (forbidden != nullptr && *forbidden != '\0') return false;
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

ExitCode refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return ExitCode::bad_input;
}

}  // namespace shardwise::cli
