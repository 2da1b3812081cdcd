#include "simulator/simulate.h"

#include <fmt/format.h>

#include <utility>

#include "planner/cost/estimate.h"
#include "planner/cost/host_issue.h"
#include "planner/cost/time_rules.h"
#include "planner/lowering/lower.h"
#include "planner/spec/check.h"
#include "simulator/shared_engine.h"
#include "simulator/stage_summary.h"
#include "simulator/step_report.h"

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

namespace {

/// Program, prices and workload.
void prepare(const Plan& plan, const SimulationOptions& options, Simulation& made) {
  made.program = lower(plan, options.granularity);
  made.prices = prices_of(plan, made.program, options.transport);
  LaunchRules launch;
  if (options.host) {
    const TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
    launch.issue = rules.issue.value();
    launch.waits_for_messages = waits_for_messages(rules, plan.layout);
    launch.waits_for_norm = rules.waits_for_norm;
  }
  launch.in_issue_order = options.in_issue_order;
  std::vector<LinkKind> links;
  if (options.shared_links) {
    links = shared_links(plan.cluster);
  } else {
    for (std::vector<CostPrice>& stage : made.prices) {
      for (CostPrice& price : stage) price.link_share = {};
    }
  }
  made.work = options.all_ranks
                  ? all_ranks(made.program, made.prices, plan.layout, links, launch)
                  : representatives(made.program, made.prices, plan.layout, links, launch);
}

/// And the timeline.
void run(const Plan& plan, const SimulationOptions& options, Simulation& made) {
  prepare(plan, options, made);
  made.timeline = options.contention ? run_shared(made.work) : run_alone(made.work);
  SHARDWISE_CHECK(made.timeline.stalled.empty(),
                  fmt::format("{} operations never end", made.timeline.stalled.size()));
}

}  // namespace

Simulation simulate(const Plan& plan, const SimulationOptions& options) {
  Simulation made;
  run(plan, options, made);
  made.met = meeting_times(made.work, made.timeline);
  for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
    const StageProgram& stage = made.program.stages[s];
    const std::size_t base = made.actor_of(s).base;
    const std::size_t count = stage.operations.size();
    const std::span<const double> start(made.timeline.start);
    const std::span<const double> end(made.timeline.end);
    made.memory.push_back(memory_over_time(stage, start.subspan(base, count),
                                           end.subspan(base, count), plan.engine.allocator));
  }
  made.report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  fill_report(made.report, plan, made);
  return made;
}

std::vector<std::string> hanging_at(const Plan& plan, const SimulationOptions& options) {
  if (!options.in_issue_order) return {};
  Simulation made;
  prepare(plan, options, made);
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
  Simulation made;
  run(plan, options, made);
  return Seconds(made.timeline.length());
}

Seconds simulated_step(const Plan& plan, const SimulationOptions& options) {
  const StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  return simulated_length(plan, options) + report.time.input_exposed;
}

}  // namespace shardwise::sim
