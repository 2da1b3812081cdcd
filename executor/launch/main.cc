#include <sys/resource.h>

#include <cstdlib>

#include "executor/launch/command.h"
#include "executor/launch/process_limits.h"
#include "executor/storage/bad_input.h"
#include "planner/files/program.h"

namespace {

/// Whether ulimit -v limits this process. OpenBLAS starts threads of its own, which then ask for
/// their buffers again and again, and waits for them when the process ends.
bool address_space_is_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

int main(int argc, char** argv) {
  shardwise::exec::raise_limits();
  const int code = shardwise::run_program("shardwise-run", [&] {
    try {
      return shardwise::exec::run_command(argc, argv);
    } catch (const shardwise::exec::BadInput& problem) {
      shardwise::exec::say({shardwise::exec::Failure::Kind::bad_input, problem.what()});
      return shardwise::exec::kBadInput;
    }
  });
  if (address_space_is_limited()) std::_Exit(code);
  return code;
}
