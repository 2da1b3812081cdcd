#pragma once

#include <cstddef>
#include <vector>

#include "simulator/engine.h"

namespace shardwise::sim {

/// The chain of operations that ends with the step's last, each of which began when the one before
/// it ended (or when the host had issued it); numbers, first operation first. What shortens one of
/// them shortens the step, as long as the chain stays the longest. \pre work is of representatives
std::vector<std::size_t> critical_path(const Workload& work, const Timeline& timeline);

}  // namespace shardwise::sim
