#include "cli/command.h"
#include "planner/files/program.h"

int main(int argc, char** argv) {
  shardwise::keep_freed_memory();
  return shardwise::run_program(
      "shardwise", [&] { return static_cast<int>(shardwise::cli::run_command(argc, argv)); });
}
