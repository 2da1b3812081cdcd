#pragma once

#include <string>
#include <vector>

#include "planner/recorded/metrics.h"

namespace shardwise::view {

/// A run that is followed by the file of metrics that it writes.
struct MetricsState {
  std::string file;  // empty: none
  std::vector<MetricsStep> steps;
  std::string note;     // why its times mean nothing; empty where they do
  std::string problem;  // why it is followed no further
  bool waits = false;   // half a line was read
};

/// The median time of a step; 0 where there is none. The first steps of a run take longer, and a
/// median does not see them.
Seconds median_time(const std::vector<MetricsStep>& steps);

/// "120 steps, the last 1.23 s, median 1.20 s, predicted +4.2 %, loss 2.31".
std::string metrics_text(const MetricsState& metrics, Seconds predicted);

}  // namespace shardwise::view
