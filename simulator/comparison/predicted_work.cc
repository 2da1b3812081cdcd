#include "simulator/comparison/predicted_work.h"

#include <algorithm>

#include "planner/spec/plan/mesh.h"
#include "simulator/clock/stage_summary.h"
#include "simulator/clock/step_report.h"

namespace shardwise::sim {

std::unordered_map<std::string, KindAndPhase> kinds_by_name(const StepProgram& program) {
  std::unordered_map<std::string, KindAndPhase> made;
  for (const StageProgram& stage : program.stages) {
    for (ProgramOp op : stage.operations) {
      op.microbatch = -1;
      made.try_emplace(shardwise::name_of(stage, op),
                       KindAndPhase{kind_of(stage, op), phase_of(op)});
    }
  }
  return made;
}

StepProfile profiled_prediction(const Simulation& simulation, std::size_t stage) {
  const StageProgram& program = simulation.program.stages[stage];
  const std::size_t base = simulation.actor_of(stage).base;
  std::vector<DeviceWork> work;
  work.reserve(program.operations.size());
  double first = simulation.timeline.length();
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const ProgramOp& op = program.operations[i];
    first = std::min(first, simulation.timeline.start[base + i]);
    work.push_back({simulation.timeline.start[base + i], simulation.timeline.end[base + i],
                    kind_of(program, op), phase_of(op)});
  }
  return profile_of(work, first, simulation.timeline.length());
}

StepProfile predicted_profile(const Simulation& simulation, std::size_t stage) {
  const StageProgram& program = simulation.program.stages[stage];
  const StageRunTimes run = run_times(simulation, stage);
  std::vector<DeviceWork> work;
  work.reserve(program.operations.size());
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    const ProgramOp& op = program.operations[i];
    work.push_back({span_of(run, i).met, run.end[i], kind_of(program, op), phase_of(op)});
  }
  return profile_of(work, *std::ranges::min_element(simulation.timeline.start), run.length);
}

TracedProfile traced_profile(const OperationStep& step, const Simulation& simulation,
                             std::size_t stage) {
  const auto kinds = kinds_by_name(simulation.program);
  TracedProfile made;
  std::vector<DeviceWork> work;
  for (const OperationRun& run : step.runs) {
    const OperationSum& operation = step.operations[run.operation];
    if (operation.stage != static_cast<std::int32_t>(stage)) continue;
    const auto known = kinds.find(operation.name);
    if (known == kinds.end()) {
      ++made.unknown;
      continue;
    }
    work.push_back({run.start, run.end, known->second.kind, known->second.phase});
  }
  made.profile = profile_of(work, 0, step.length.value());
  return made;
}

std::size_t stage_of_rank(const Layout& layout, std::int64_t rank) {
  const std::vector<std::int64_t> stages = group_ranks(layout, GroupKind::pp, rank);
  return static_cast<std::size_t>(std::find(stages.begin(), stages.end(), rank) - stages.begin());
}

std::size_t slowest_stage(const Simulation& simulation) {
  std::size_t slowest = 0;
  const StepTimeline timeline = simulation.report.timeline.value_or(StepTimeline{});
  const std::vector<StageTimeline>& stages = timeline.stages;
  for (std::size_t s = 1; s < stages.size(); ++s) {
    if (stages[s].computing > stages[slowest].computing) slowest = s;
  }
  return slowest;
}

}  // namespace shardwise::sim
