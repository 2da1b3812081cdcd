#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// Time of an operation that has not started, or not ended.
inline constexpr double kUnknownTime = -1;

/// When each operation ran, by number (Actor::base + index). Seconds from the step's begin.
///
/// An operation starts once the operations it waits for have ended, its stream is free and the host
/// has issued it. One that meets others starts when it is ready, as the kernel of a collective
/// does, but ends with all of them: end = latest ready + duration.
struct Timeline {
  std::vector<double> start;
  std::vector<double> end;
  /// Operations that never ended because ranks wait for one another in a circle: what hangs a real
  /// run. The first of each stream that stands still; empty for a sound program.
  std::vector<std::size_t> stalled;
  bool stopped = false;  // because it was asked to

  double length() const;  // end of the last operation
};

/// Runs every operation at its own speed: nothing shares links or multiprocessors. One sweep in
/// dependency order; no event queue. Deterministic to the last bit.
///
/// Soon after `stop` is requested it ends: the timeline is `stopped`, and operations that had not
/// ended have negative ends.
Timeline run_alone(const Workload& work, const std::stop_token& stop = {});

/// Between two looks at a stop token, at most: moments of run_shared, and stretches of a stream
/// without waiting of run_alone.
inline constexpr std::uint32_t kTurnsOfStop = 1024;

}  // namespace shardwise::sim
