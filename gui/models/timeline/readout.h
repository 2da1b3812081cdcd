#pragma once

#include <string>
#include <vector>

#include "gui/models/timeline/timeline_model.h"
#include "planner/spec/text/units.h"

namespace shardwise::view {

/// Work of a lane in a part of the step.
struct LaneReadout {
  LaneName lane;
  std::string label;   // "stage 0, compute"
  double busy = 0;     // seconds
  double bytes = 0;    // of the buffers that its collectives moved; 0: not known, or none
  BytesPerSecond bus;  // while it moved, as nccl-tests counts it; 0: not known
};

/// And all lanes. Of an operation that is partly in it, that share of its bytes counts.
struct Readout {
  double duration = 0;  // seconds
  double exposed = 0;   // seconds of the stage that the report's parts are of: streams together
  std::size_t exposed_stage = 0;
  double most_exposed = 0;  // of the stage that has most
  std::size_t most_stage = 0;
  std::vector<LaneReadout> lanes;  // those that are busy in it
};
Readout read_out(const StepLanes& step, TimeRange range);

/// "12.1 ms, exposed 0.4 ms on stage 3, the slowest; 0.6 ms on stage 0".
std::string text_of(const Readout& readout);

}  // namespace shardwise::view
