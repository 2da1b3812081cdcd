#include "answers/asked_step.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "answers/simulation_memory.h"
#include "planner/legality/legality.h"
#include "planner/lowering/lower.h"
#include "planner/question/flags.h"
#include "simulator/workload/failed_links.h"

namespace shardwise::sim {
namespace {

/// Failures of the network that leave ranks without a way to one another.
Diagnostics failure_problems(const AskedStep& asked, const Plan& plan) {
  const NetworkFailures& failed = asked.noise.failed;
  if (failed.links == 0 && failed.switches == 0) return {};
  if (asked.contention == "off") {
    return {wrong_flag(failed.links > 0 ? "--failed-links" : "--failed-switches",
                       "needs contention: without it no links are shared",
                       "leave out --contention off")};
  }
  const std::int64_t switches = leaf_switches(plan);
  if (failed.switches > switches) {
    return {wrong_flag("--failed-switches",
                       fmt::format("{} {}, but there are {}", failed.switches,
                                   failed.switches == 1 ? "switch" : "switches", switches),
                       "each unit of nodes has one leaf switch for each NIC of a node")};
  }
  const std::int64_t links = spare_links(plan, failed.switches);
  if (failed.links <= links) return {};
  return {wrong_flag(
      "--failed-links",
      fmt::format("{} {}, but {} can fail", failed.links, failed.links == 1 ? "link" : "links",
                  links == 0 ? "none" : fmt::format("at most {}", links)),
      "each node and each switch needs one working link")};
}

}  // namespace

SimulationOptions options_of(const AskedStep& asked) {
  SimulationOptions options;
  options.granularity = asked.granularity == "kernel" ? Granularity::kernel : Granularity::layer;
  if (asked.transport == "registered") options.transport = Transport::registered;
  if (asked.transport == "copy_engines") options.transport = Transport::copy_engines;
  options.contention = asked.contention == "on";
  options.host = asked.host == "on";
  options.in_issue_order = asked.one_connection;
  options.all_ranks = asked.all_ranks;
  return options;
}

Diagnostic fixed_by_plan(std::string flag, const std::string& plan) {
  return wrong_flag(std::move(flag), fmt::format("{} already sets it", plan),
                    "leave out the flag or the file");
}

Diagnostics fixed_by_plan(const AskedStep& asked) {
  if (asked.plan.empty()) return {};
  std::vector<std::string> given = given_flags(asked.job);
  for (std::string& flag : given_flags(asked.layout)) given.push_back(std::move(flag));
  Diagnostics problems;
  for (std::string& flag : given) problems.push_back(fixed_by_plan(std::move(flag), asked.plan));
  return problems;
}

Result<PlannedStep> read_step(const AskedStep& asked) {
  if (!asked.plan.empty()) {
    Diagnostics fixed = fixed_by_plan(asked);
    if (!fixed.empty()) return fixed;
    Result<Plan> plan = read_plan(asked.plan, check_plan);
    if (!plan) return plan.problems();
    PlannedStep read{*std::move(plan), {}};
    note_curves(read.plan.model, read.plan.cluster, read.plan.job, read.assumptions);
    return read;
  }
  if (asked.job.model.empty() || asked.job.cluster.empty()) {
    return wrong_flag("PLAN", "nothing to simulate", "give a plan.json, or --model and --cluster");
  }
  Result<Subject> subject = read_subject(asked.job);
  if (!subject) return subject.problems();
  const Result<Layout> layout = read_layout(asked.layout, *subject, asked.batch);
  if (!layout) return layout.problems();
  note_curves(subject->model, subject->cluster, subject->job, subject->assumptions);
  return PlannedStep{{subject->model, subject->cluster, subject->job, subject->engine, *layout},
                     subject->assumptions};
}

PlannedStep best_step(const PlanQuestion& question, const PlanAnswer& answer) {
  PlannedStep best = {plan_of(question, answer.best.front()), question.assumptions};
  best.assumptions.push_back(
      {"layout",
       fmt::format(
           "the best layout of shardwise plan{}",
           question.takes_engine ? fmt::format(", of {} engines", question.engines.size()) : ""),
       "shardwise plan"});
  return best;
}

void set_network(const AskedStep& asked, Plan& plan) {
  if (asked.in_network != "off") return;
  for (LinkTier& tier : plan.cluster.tiers) tier.in_network = InNetwork::none;
}

Diagnostics step_problems(const AskedStep& asked, const Plan& plan) {
  Diagnostics failures = failure_problems(asked, plan);
  if (!failures.empty()) return failures;
  const SimulationOptions options = options_of(asked);
  Diagnostics long_step = too_many_operations(plan, options.granularity);
  if (!long_step.empty()) return long_step;
  if (asked.memory_limit > Bytes(0)) {
    Diagnostics large = over_memory_limit(asked, plan);
    if (!large.empty()) return large;
  }
  const std::vector<std::string> hanging = hanging_at(plan, options);
  if (hanging.empty()) return {};
  return {
      wrong_flag("--one-connection",
                 fmt::format("the step never ends: {} operations wait for one another, first {}",
                             hanging.size(), hanging.front()),
                 "in one queue, a message that waits for its receiver blocks the operations "
                 "after it: leave the flag out")};
}

Diagnostics noise_problems(const NoiseRules& noise, const Plan& plan) {
  Diagnostics problems;
  if (noise.slow_nodes > 0 && noise.slow_factor <= 1) {
    problems.push_back(wrong_flag("--slow-nodes", "slow nodes need a slow factor above 1",
                                  "add --slow-factor, for example 1.3"));
  }
  const std::int64_t each = plan.cluster.gpus_per_node;
  const std::int64_t nodes = (plan.layout.world() + each - 1) / each;
  if (noise.slow_nodes > nodes) {
    problems.push_back(wrong_flag(
        "--slow-nodes", fmt::format("{} slow nodes, but the job has {}", noise.slow_nodes, nodes)));
  }
  return problems;
}

}  // namespace shardwise::sim
