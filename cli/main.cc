#include "cli/command.h"

int main(int argc, char** argv) {
  return static_cast<int>(shardwise::cli::run_command(argc, argv));
}
