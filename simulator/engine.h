#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/workload.h"

namespace shardwise::sim {

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

  double length() const;  // end of the last operation
};

/// Runs every operation at its own speed: nothing shares links or multiprocessors. One sweep in
/// dependency order; no event queue. Deterministic to the last bit.
Timeline run_alone(const Workload& work);

}  // namespace shardwise::sim
