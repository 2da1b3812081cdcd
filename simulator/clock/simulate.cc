#include "simulator/clock/simulate.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "planner/estimate/estimate.h"
#include "planner/spec/text/check.h"
#include "simulator/clock/prepare.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/clock/stage_summary.h"
#include "simulator/clock/steady_step.h"
#include "simulator/clock/step_report.h"

namespace shardwise::sim {

const Actor& Simulation::actor_of(std::size_t stage) const {
  const Actor* lowest = nullptr;
  for (const Actor& actor : work.actors) {
    if (actor.program != stage) continue;
    if (lowest == nullptr || actor.rank < lowest->rank) lowest = &actor;
  }
  SHARDWISE_CHECK(lowest != nullptr, fmt::format("no actor of stage {}", stage));
  return *lowest;
}

const Actor& Simulation::actor_of(std::int64_t rank, std::size_t stage) const {
  if (work.actor_of_rank.empty()) return actor_of(stage);
  return work.actors[work.actor_of_rank[static_cast<std::size_t>(rank)]];
}

namespace {

MemoryCourse memory_of(const Simulation& made, std::size_t stage, AllocatorKind allocator) {
  const StageProgram& program = made.program.stages[stage];
  const std::size_t base = made.actor_of(stage).base;
  const std::size_t count = program.operations.size();
  return memory_over_time(program, std::span(made.timeline.start).subspan(base, count),
                          std::span(made.timeline.end).subspan(base, count), allocator);
}

/// And the timeline. \returns whether it was run to its end
bool run(const Plan& plan, const SimulationOptions& options, Wanted wanted,
         const std::stop_token& stop, Simulation& made) {
  if (stop.stop_requested()) return false;
  prepare(plan, options, wanted, made);
  made.timeline = options.contention ? run_shared(made.work, stop) : run_alone(made.work, stop);
  if (made.timeline.stopped) return false;
  SHARDWISE_CHECK(made.timeline.stalled.empty(),
                  fmt::format("{} operations never end", made.timeline.stalled.size()));
  return true;
}

}  // namespace

Simulation simulate(const Plan& plan, const SimulationOptions& options) {
  std::optional<Simulation> made = simulate(plan, options, std::stop_token());
  SHARDWISE_CHECK(made.has_value(), "a step that nothing stops has an end");
  return *std::move(made);
}

std::optional<Simulation> simulate(const Plan& plan, const SimulationOptions& options,
                                   const std::stop_token& stop) {
  std::optional<Simulation> simulation(std::in_place);
  Simulation& made = *simulation;
  if (!run(plan, options, Wanted::all, stop, made)) return std::nullopt;
  made.met = meeting_times(made.work, made.timeline);
  for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
    if (stop.stop_requested()) return std::nullopt;
    made.memory.push_back(memory_of(made, s, plan.engine.allocator));
  }
  if (stop.stop_requested()) return std::nullopt;
  made.report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  fill_report(made.report, plan, made, options.scales);
  return simulation;
}

std::vector<std::string> hanging_at(const Plan& plan, const SimulationOptions& options) {
  if (!options.in_issue_order) return {};
  Simulation made;
  prepare(plan, options, Wanted::times, made);
  std::vector<std::string> names;
  for (const std::size_t operation : run_alone(made.work).stalled) {
    for (const Actor& actor : made.work.actors) {
      const StageProgram& stage = made.work.program_of(actor);
      if (operation < actor.base || operation - actor.base >= stage.operations.size()) continue;
      const ProgramOp& op = stage.operations[operation - actor.base];
      names.push_back(fmt::format("{} on stage {}", name_of(stage, op), stage.stage));
    }
  }
  return names;
}

Seconds simulated_length(const Plan& plan, const SimulationOptions& options) {
  const std::optional<Seconds> length = simulated_length(plan, options, std::stop_token());
  SHARDWISE_CHECK(length.has_value(), "a step that nothing stops has an end");
  return *length;
}

std::optional<Seconds> simulated_length(const Plan& plan, const SimulationOptions& options,
                                        const std::stop_token& stop) {
  if (!options.every_microbatch) {
    if (const std::optional<SteadyStep> steady = steady_step(plan, options, stop)) {
      return Seconds(steady->seconds);
    }
  }
  Simulation made;
  if (!run(plan, options, Wanted::times, stop, made)) return std::nullopt;
  return Seconds(made.timeline.length());
}

Seconds simulated_step(const Plan& plan, const SimulationOptions& options) {
  return simulated_length(plan, options) +
         input_exposed(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

}  // namespace shardwise::sim
