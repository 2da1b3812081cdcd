#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/text/units.h"
#include "simulator/traces/work_kind.h"

namespace shardwise::sim {

/// One piece of work of one device. Seconds.
struct DeviceWork {
  double start = 0;
  double end = 0;
  WorkKind kind = WorkKind::memory_bound;
  StepPhase phase = StepPhase::unknown;
};

/// Work of one kind and phase within a step.
struct KindTime {
  WorkKind kind = WorkKind::gemm;
  StepPhase phase = StepPhase::unknown;
  std::int64_t count = 0;
  Seconds time;     // of all of it
  Seconds exposed;  // of this, while nothing computed; all of it for what computes
};

/// A step of one device. computing + exposed + idle = length.
struct StepProfile {
  Seconds length;
  Seconds computing;            // something computes
  Seconds communicating;        // bytes move, computing or not
  Seconds exposed;              // bytes move and nothing computes
  Seconds idle;                 // neither
  std::vector<KindTime> kinds;  // those that there are, by kind, then phase
  /// Share of communication beside which something computed.
  double overlap() const { return communicating > Seconds(0) ? 1 - exposed / communicating : 0.0; }
};

/// Profile of a device's work from `begin` to `end`; work outside is cut off.
StepProfile profile_of(const std::vector<DeviceWork>& work, double begin, double end);

}  // namespace shardwise::sim
