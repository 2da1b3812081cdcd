#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/cost/leaf_context.h"
#include "planner/cost/pipeline.h"
#include "planner/cost/stage_times.h"

namespace shardwise {

/// The passes of a pipeline beside which nothing moves but activations, to the host and back: what
/// PassStreams finds there layer by layer, in one step for all layers of a kind that follow one
/// another (tests/planner/cost/host_passes_test.cc).
class HostPasses {
 public:
  /// \param stretch  of compute, as the host issues too slowly
  /// \pre only_offloads(context); all outlive this
  HostPasses(const StageTimes& stages, const LeafContext& context, double stretch);

  /// Of sweep_pipeline.
  double pass(const PipelineSlots::Slot& slot, double ready, ChunkSpan& span);

 private:
  /// Both streams of a stage: when the last operation so far ends.
  struct Stage {
    double compute = 0;
    double host = 0;
  };
  /// Seconds of one layer of a kind.
  struct Pace {
    ChunkTime compute;
    double copy = 0;  // one way
  };

  const PipelineTimes& pipeline_;
  std::vector<Pace> paces_;  // by kind
  std::vector<Stage> stages_;
};

}  // namespace shardwise
