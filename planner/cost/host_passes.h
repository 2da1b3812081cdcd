#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/cost/leaf_context.h"
#include "planner/cost/pipeline.h"
#include "planner/cost/stage_times.h"

namespace shardwise {

/// Compute and the copies of activations of one stage: when the last operation so far ends.
struct HostStreams {
  double compute = 0;
  double host = 0;

  /// `count` layers of `each` seconds, whose copy takes `copy`. A layer's copy begins once it has
  /// run and the copy before has ended: the last one ends after all of them, or after the first
  /// layer and all copies, or after all layers and a copy.
  void forward(double each, double copy, double count) {
    const double first = compute + each;
    compute += count * each;
    host = std::max(std::max(host, first) + count * copy, compute + copy);
  }
  /// The same with layers that begin once their copy is back.
  void backward(double each, double copy, double count) {
    const double first = host + copy;
    host += count * copy;
    compute = std::max(std::max(compute, first) + count * each, host + each);
  }
};

/// What compute waits for copies of activations in a step of one stage.
Seconds exposed_copies(const StageTime& stage, const LeafContext& context);

/// The passes of a step beside which nothing moves but activations, to the host and back: what
/// PassStreams finds there layer by layer, in one step for all layers of a kind that follow one
/// another (tests/planner/cost/host_passes_test.cc).
class HostPasses {
 public:
  /// \param copied  SlotEnds::copied, filled
  /// \pre only_offloads(context); all outlive this
  HostPasses(const StageTimes& stages, const LeafContext& context, std::vector<double>& copied);

  /// Of sweep_pipeline.
  double pass(const PipelineSlots::Slot& slot, PassTurn& turn, ChunkSpan& span);
  StreamClocks clocks() const { return {stages_[0].compute, stages_[0].host}; }

 private:
  /// Seconds of one layer of a kind.
  struct Pace {
    ChunkTime compute;
    double copy = 0;  // one way
  };

  const PipelineTimes& pipeline_;
  std::vector<Pace> paces_;  // by kind
  std::vector<HostStreams> stages_;
  std::vector<double>& copied_;
};

}  // namespace shardwise
