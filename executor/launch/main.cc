#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "executor/launch/run.h"

int main(int argc, char** argv) {
  using shardwise::exec::CommandLine;
  shardwise::exec::RunOptions options;
  const CommandLine asked = shardwise::exec::read_command_line(argc, argv, options);
  if (asked == CommandLine::done) return 0;
  if (asked == CommandLine::wrong) return 2;
  try {
    return shardwise::exec::run(options);
  } catch (const std::exception& broken) {
    fmt::print(stderr, "shardwise-run: {}\n", broken.what());
    return 3;
  }
}
