#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "executor/launch/run.h"

int main(int argc, char** argv) {
  using shardwise::exec::CommandLine;
  // A file over the limit of its size is an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
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
