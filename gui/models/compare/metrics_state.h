#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "planner/recorded/metrics.h"

namespace shardwise::view {

/// A quantity over the steps of a run, as a plot draws it.
struct MetricsCourse {
  std::vector<double> step;
  std::vector<double> value;  // NaN: none
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
};
/// Steps of which a plot has a point each. More are cut into as many parts, of which it has the
/// least and the most.
inline constexpr std::size_t kMostPoints = 2048;
MetricsCourse course_of(std::span<const MetricsStep> steps, double (*value)(const MetricsStep&));

/// A run that is followed by the file of metrics that it writes.
struct MetricsState {
  std::string file;  // empty: none
  std::size_t steps = 0;
  MetricsStep first;  // where there is any, as what follows
  MetricsStep last;
  Seconds median;  // of the time of a step
  MetricsCourse times;
  MetricsCourse losses;
  std::string note;     // why its times mean nothing; empty where they do
  std::string problem;  // why it is followed no further
  bool waits = false;   // half a line was read
};

/// All that a state says of the steps of a run.
void put_steps(MetricsState& metrics, std::span<const MetricsStep> steps);

/// The median time of a step; 0 where there is none. The first steps of a run take longer, and a
/// median does not see them.
Seconds median_time(std::span<const MetricsStep> steps);

/// "120 steps, the last 1.23 s, median 1.20 s, predicted +4.2 %, loss 2.31".
std::string metrics_text(const MetricsState& metrics, Seconds predicted);

}  // namespace shardwise::view
