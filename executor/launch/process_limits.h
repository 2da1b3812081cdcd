#pragma once

#include <string>

namespace shardwise::exec {

/// Raises what the system allows this process: as many open files as the hard limit has, as each
/// rank is a connection or more, and a stack of 8 MiB for this thread and those to come.
void raise_limits();

/// Says what is wrong with the limits that remain (ulimit -s); empty when a run has room.
std::string narrow_limit();

}  // namespace shardwise::exec
