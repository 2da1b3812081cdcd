#include "executor/launch/command.h"
#include "executor/storage/bad_input.h"
#include "planner/files/program.h"

int main(int argc, char** argv) {
  return shardwise::run_program("shardwise-run", [&] {
    try {
      return shardwise::exec::run_command(argc, argv);
    } catch (const shardwise::exec::BadInput& problem) {
      shardwise::exec::say({shardwise::exec::Failure::Kind::bad_input, problem.what()});
      return shardwise::exec::kBadInput;
    }
  });
}
