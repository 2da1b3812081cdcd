#pragma once

#include <array>
#include <cstddef>

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"
#include "planner/schedule/pipeline_slots.h"
#include "planner/schedule/steady_state.h"

namespace shardwise {

/// The two places that a GPU has for activations that wait for backward in host memory. Passes of
/// layers take turns with them: a forward pass has one until its copy has left, a backward pass
/// from the begin of its copy back to its own end. docs/step_program.md, "Buffers".
class HostPlaces {
 public:
  /// When the next pass may have one, in seconds from the step's begin.
  double free() const { return free_[turns_ % free_.size()]; }
  /// It has one until then.
  void take(double until) { free_[turns_++ % free_.size()] = until; }
  void visit(StateVisit& state) {
    for (std::size_t i = 0; i < free_.size(); ++i) state.clock(free_[(turns_ + i) % free_.size()]);
  }

 private:
  std::array<double, 2> free_{};
  std::size_t turns_ = 0;
};

/// Host copies for each micro-batch of a layer, averaged over the schedule: one out, one back, and
/// one more back where weight gradients are deferred.
double host_copies(const PipelineSlots& slots);

/// Time compute waits for copies of activations in a step of one stage.
Seconds exposed_copies(const StageTime& stage, const LeafContext& context);

}  // namespace shardwise
