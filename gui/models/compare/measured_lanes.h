#pragma once

#include <cstddef>
#include <vector>

#include "gui/models/compare/compared.h"
#include "gui/models/timeline/timeline_model.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::view {

/// The step that a plan is compared with, as lanes.
struct MeasuredLanes {
  double length = 0;        // seconds
  std::vector<Lane> lanes;  // as StepLanes has them
  /// The lane of a stream of a stage; null where the step has none.
  const Lane* find(std::size_t stage, Stream stream) const;
};

/// The median step of a trace, or the simulated step of another plan. A report has no spans. Of a
/// profiler's trace, kernels that run beside others of their lane are cut, so that no lane
/// overlaps.
/// \param program  the plan's step, for the colours of its operations
/// \param stage    the pipeline stage that a profiler's trace shows
MeasuredLanes measured_lanes(const Compared& other, const StepProgram& program, std::size_t stage);

/// The part of the other step that is laid under all of the plan's step, in seconds of its own.
struct OwnRange {
  double from = 0;
  double to = 0;
  double length() const { return to - from; }
};

/// Where a moment of the other step is drawn on the plan's axis, and the reverse.
double on_axis(double seconds, OwnRange own, double axis);
double off_axis(double seconds, OwnRange own, double axis);

/// Busy share of the plan's lane less that of the other, in equal parts of a range of the plan's
/// axis: above 0 where the plan is busier.
std::vector<float> busier(const Lane& predicted, const Lane& measured, OwnRange own, double axis,
                          TimeRange range, std::size_t columns);

}  // namespace shardwise::view
