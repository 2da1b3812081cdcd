#include <string_view>

#include "executor/launch/calibrate.h"
#include "executor/launch/run.h"
#include "executor/storage/bad_input.h"
#include "planner/files/program.h"

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
  return shardwise::run_program("shardwise-run", [&] {
    try {
      const bool calibrates = argc > 1 && std::string_view(argv[1]) == "calibrate";
      return calibrates ? calibrate(argc - 1, argv + 1) : run(argc, argv);
    } catch (const shardwise::exec::BadInput& problem) {
      shardwise::exec::say({shardwise::exec::Failure::Kind::bad_input, problem.what()});
      return shardwise::exec::kBadInput;
    }
  });
}
