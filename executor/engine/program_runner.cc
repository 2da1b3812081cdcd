#include "executor/engine/program_runner.h"

#include <chrono>

namespace shardwise::exec {

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace shardwise::exec
