#pragma once

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// Result of `start`, which starts a thread. \throws IoError that says which thread the system does
/// not start, and why
template <class Start>
auto start_thread(const std::string& which, const Start& start) {
  try {
    return start();
  } catch (const std::system_error& refused) {
    throw IoError(fmt::format("{} cannot be started: {} (see ulimit -v and ulimit -u)", which,
                              refused.code().message()));
  }
}

}  // namespace shardwise::exec
