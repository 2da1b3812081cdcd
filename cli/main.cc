#include <csignal>

#include "cli/command.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // beyond the limit of a file's size writing fails, with a reason
  return static_cast<int>(shardwise::cli::run_command(argc, argv));
}
