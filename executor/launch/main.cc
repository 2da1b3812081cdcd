#include <csignal>
#include <exception>
#include <string_view>

#include "executor/launch/calibrate.h"
#include "executor/launch/run.h"
#include "executor/storage/bad_input.h"

namespace {

using shardwise::exec::CommandLine;

int calibrate(int argc, char** argv) {
  shardwise::exec::CalibrateOptions options;
  const CommandLine asked = shardwise::exec::read_calibrate_line(argc, argv, options);
  if (asked == CommandLine::run) return shardwise::exec::calibrate(options);
  return asked == CommandLine::done ? shardwise::exec::kDone : shardwise::exec::kBadInput;
}

int run(int argc, char** argv) {
  shardwise::exec::RunOptions options;
  const CommandLine asked = shardwise::exec::read_command_line(argc, argv, options);
  if (asked == CommandLine::run) return shardwise::exec::run(options);
  return asked == CommandLine::done ? shardwise::exec::kDone : shardwise::exec::kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  // A file over the limit of its size is an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const bool calibrates = argc > 1 && std::string_view(argv[1]) == "calibrate";
    return calibrates ? calibrate(argc - 1, argv + 1) : run(argc, argv);
  } catch (const shardwise::exec::BadInput& problem) {
    shardwise::exec::say({shardwise::exec::Failure::Kind::bad_input, problem.what()});
    return shardwise::exec::kBadInput;
  } catch (const std::exception& broken) {
    shardwise::exec::say({shardwise::exec::Failure::Kind::broken, broken.what()});
    return shardwise::exec::kWorldBroke;
  }
}
