#pragma once

#include <cstddef>
#include <vector>

#include "planner/cost/step/host_issue.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"
#include "planner/schedule/pipeline.h"

namespace shardwise {

/// Passes that take as long as their chunks, or as the host takes to issue them, one after the
/// other on each stage: what PassStreams finds layer by layer where nothing moves beside them
/// (tests/planner/cost/step/issued_passes_test.cc).
class IssuedPasses {
 public:
  /// \pre `pipeline` outlives this
  IssuedPasses(const PipelineTimes& pipeline, const HostRules& rules);

  /// Visitor of sweep_pipeline.
  double pass(const PipelineSlots::Slot& slot, PassTurn& turn, ChunkSpan& span);
  StageHosts& hosts() { return hosts_; }
  void visit(StateVisit& state) {
    for (double& free : free_) state.clock(free);
  }

 private:
  std::size_t per_stage_;
  std::vector<IssuedPass> chunks_;  // by stage x chunks + chunk
  StageHosts hosts_;
  std::vector<double> free_;  // by stage: end of its last pass
};

/// The passes of a step beside which nothing moves, with what they wait for their hosts.
struct IssuedRun {
  PipelineRun run;
  bool late = false;   // a host takes longer to issue a pass than that runs
  bool waits = false;  // or issues nothing before a pass has its input
  bool matters() const { return late || waits; }
};
IssuedRun issued_run(const StageTimes& stages, const LeafContext& context);

}  // namespace shardwise
