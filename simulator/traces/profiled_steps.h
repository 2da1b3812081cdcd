#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/text/units.h"
#include "simulator/traces/profiler_record.h"
#include "simulator/traces/step_profile.h"

namespace shardwise::sim {

/// All kernels of one name in all steps.
struct KernelTime {
  std::string name;
  WorkKind kind = WorkKind::memory_bound;
  std::int64_t count = 0;
  Seconds time;
};

/// A step that a profiler saw: from its first work on the device to that of the next one; where
/// none follows, to the end of its own.
struct ProfiledStep {
  std::string name;  // "ProfilerStep#4"; "whole trace" without such marks
  StepProfile profile;
};

struct ProfiledSteps {
  std::vector<ProfiledStep> steps;      // in time; at least one
  std::vector<KernelTime> kernels;      // most time first
  std::vector<DeviceWork> median_work;  // of the step of median length, from its begin, in time
  std::int64_t operations = 0;          // of the device, in steps or between them
  std::int64_t other_devices = 0;       // operations of further devices, which are not looked at
  std::int64_t without_launch = 0;      // no event says who launched them: their phase is unknown
  std::int64_t overlapping = 0;         // begin over 1 us before what ran on their stream ended
  Seconds longest_overlap;              // of these
  bool has_backward = false;            // autograd's marks, or a kernel that is called backward

  /// The one of median length, the shorter of two.
  const ProfiledStep& median() const { return steps[median_index()]; }
  std::size_t median_index() const;
};

/// Cuts a record into steps, each into kinds and phases. Work belongs to the step in which it was
/// launched. Launched inside "autograd::engine::evaluate_function", or on a thread other than the
/// steps' that runs autograd, it is backward; inside "Optimizer." marks, or after the last backward
/// of its step, optimizer; else forward. Without marks of autograd its phase is unknown.
/// \pre the record has work
ProfiledSteps profiled_steps(const ProfilerRecord& record);

}  // namespace shardwise::sim
