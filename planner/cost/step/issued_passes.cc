#include "planner/cost/step/issued_passes.h"

#include <algorithm>

#include "planner/schedule/pipeline_sweep.h"

namespace shardwise {

IssuedPasses::IssuedPasses(const PipelineTimes& pipeline, const HostRules& rules)
    : per_stage_(static_cast<std::size_t>(pipeline.slots->chunks)),
      chunks_(issued_chunks(pipeline, rules)),
      hosts_(pipeline, rules),
      free_(static_cast<std::size_t>(pipeline.slots->stages)) {}

double IssuedPasses::pass(const PipelineSlots::Slot& slot, PassTurn& turn, ChunkSpan& span) {
  const auto stage = static_cast<std::size_t>(slot.stage);
  const std::size_t place = stage * per_stage_ + static_cast<std::size_t>(slot.chunk);
  HostClock& host = hosts_.of(slot.stage);
  hosts_.receive(slot, turn);
  const double begin = std::max(turn.ready, free_[stage]);
  if (slot.first) span.begin = Seconds(std::max(begin, host.next()));
  // Of the layers of a pass the last one alone waits for the buffer that it fills, and the first
  // one alone reads what it is handed.
  free_[stage] = std::max(host.run(chunks_[place].of(slot.part), begin), turn.room);
  turn.read = begin;
  hosts_.post(slot);
  return free_[stage];
}

IssuedRun issued_run(const StageTimes& stages, const LeafContext& context) {
  const PipelineTimes& pipeline = stages.pipeline;
  const HostRules rules = host_rules(context, stages.hop);
  IssuedRun issued;
  issued.late = issues_late(pipeline, rules);
  issued.waits = rules.waits;
  if (!issued.matters()) {
    issued.run = pipeline.run;
    return issued;
  }
  IssuedPasses passes(pipeline, rules);
  std::vector<double> end;
  issued.run = sweep_pipeline(*pipeline.slots, passes, stages.hop, end, context.stop);
  return issued;
}

}  // namespace shardwise
