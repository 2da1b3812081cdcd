#pragma once

#include <algorithm>
#include <cstdint>

#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// Elements of a task of a kernel that goes element by element: some microseconds of work.
inline constexpr std::int64_t kElementsATask = 16'384;

/// Calls f(first, n) for runs of at most kElementsATask of `count` elements, on all threads.
template <class F>
void for_runs(std::int64_t count, Workers& workers, F f) {
  workers.run((count + kElementsATask - 1) / kElementsATask, [&](std::int64_t task) {
    const std::int64_t first = task * kElementsATask;
    f(first, std::min(kElementsATask, count - first));
  });
}

}  // namespace shardwise::exec
