#include "cli/simulate_request.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/output_flags.h"
#include "cli/simulate_files.h"
#include "planner/cost/legality.h"
#include "planner/lowering/lower.h"
#include "simulator/failed_links.h"

namespace shardwise::cli {
namespace {

/// Flags whose values a plan file has already.
Diagnostics fixed_by_file(const SimulateFlags& flags) {
  std::vector<std::string> given = given_flags(flags.job);
  const std::vector<std::string> of_layout = given_flags(flags.layout);
  given.insert(given.end(), of_layout.begin(), of_layout.end());
  if (!flags.versus.empty()) given.emplace_back("--versus");
  if (flags.growth > 0) given.emplace_back("--growth");
  Diagnostics problems;
  for (const std::string& flag : given) {
    problems.push_back({"command line", 0, 0, flag, fmt::format("{} already sets it", flags.plan),
                        "leave out the flag or the file"});
  }
  return problems;
}

/// The plan of a file, or of the flags, on the cluster as it is.
Result<SimulatedPlan> read_simulated(const SimulateFlags& flags) {
  if (!flags.plan.empty()) {
    const Diagnostics fixed = fixed_by_file(flags);
    if (!fixed.empty()) return fixed;
    Result<Plan> plan = read_plan(flags.plan, check_plan);
    if (!plan) return plan.problems();
    SimulatedPlan read{*std::move(plan), {}};
    note_curves(read.plan.model, read.plan.cluster, read.plan.job, read.assumptions);
    return read;
  }
  if (flags.job.model.empty() || flags.job.cluster.empty()) {
    return wrong_flag("PLAN", "nothing to simulate", "give a plan.json, or --model and --cluster");
  }
  Result<Subject> subject = read_subject(flags.job);
  if (!subject) return subject.problems();
  const BatchWhenOpen batch =
      flags.growth > 0 ? BatchWhenOpen::one_microbatch : BatchWhenOpen::usual;
  const Result<Layout> layout = read_layout(flags.layout, *subject, batch);
  if (!layout) return layout.problems();
  note_curves(subject->model, subject->cluster, subject->job, subject->assumptions);
  return SimulatedPlan{{subject->model, subject->cluster, subject->job, subject->engine, *layout},
                       subject->assumptions};
}

/// Failures of the network that leave ranks without a way to one another.
Diagnostics failure_problems(const SimulateFlags& flags, const Plan& plan) {
  const sim::NetworkFailures& failed = flags.noise.failed;
  if (failed.links == 0 && failed.switches == 0) return {};
  if (flags.contention == "off") {
    return wrong_flag(failed.links > 0 ? "--failed-links" : "--failed-switches",
                      "needs contention: without it no links are shared",
                      "leave out --contention off");
  }
  const std::int64_t switches = sim::leaf_switches(plan);
  if (failed.switches > switches) {
    return wrong_flag("--failed-switches",
                      fmt::format("{} {}, but there are {}", failed.switches,
                                  failed.switches == 1 ? "switch" : "switches", switches),
                      "each unit of nodes has one leaf switch for each NIC of a node");
  }
  const std::int64_t links = sim::spare_links(plan, failed.switches);
  if (failed.links <= links) return {};
  return wrong_flag(
      "--failed-links",
      fmt::format("{} {}, but {} can fail", failed.links, failed.links == 1 ? "link" : "links",
                  links == 0 ? "none" : fmt::format("at most {}", links)),
      "each node and each switch needs one working link");
}

/// No output is an input or another output.
Diagnostics check_files(const SimulateFlags& flags) {
  std::vector<NamedFile> inputs = files_of(flags.job);
  inputs.push_back({"PLAN", flags.plan});
  inputs.push_back({"--import", flags.import});
  const std::vector<NamedFile> outputs = {
      {"--output", flags.output}, {"--trace", flags.trace}, {"--svg", flags.svg}};
  for (const NamedFile& output : outputs) {
    if (output.path.empty() || flags.chakra.empty()) continue;
    const std::string name = std::filesystem::path(output.path).filename();
    const bool of_chakra = name == "comm_groups.json" || name.ends_with(".et");
    if (!of_chakra || !is_inside(output.path, flags.chakra)) continue;
    return wrong_flag(output.flag, output.path + " is a name of the files of --chakra",
                      "give another file");
  }
  return prepare_outputs(outputs, inputs, flags.screen.json);
}

}  // namespace

Diagnostics wrong_flag(const std::string& flag, const std::string& message,
                       const std::string& hint) {
  return Diagnostics{{"command line", 0, 0, flag, message, hint}};
}

sim::SimulationOptions options_of(const SimulateFlags& flags) {
  sim::SimulationOptions options;
  options.granularity = flags.granularity == "kernel" ? Granularity::kernel : Granularity::layer;
  if (flags.transport == "registered") options.transport = sim::Transport::registered;
  if (flags.transport == "copy_engines") options.transport = sim::Transport::copy_engines;
  options.contention = flags.contention == "on";
  options.host = flags.host == "on";
  options.in_issue_order = flags.one_connection;
  options.all_ranks = flags.all_ranks;
  return options;
}

bool takes_best(const SimulateFlags& flags) {
  return flags.plan.empty() && flags.import.empty() && flags.growth == 0 &&
         given_flags(flags.layout).empty() && !flags.job.model.empty() &&
         !flags.job.cluster.empty();
}

Result<SimulatedPlan> simulated_plan(const SimulateFlags& flags) {
  Result<SimulatedPlan> read = read_simulated(flags);
  if (!read) return read;
  return checked_plan(flags, *std::move(read));
}

Result<SimulatedPlan> checked_plan(const SimulateFlags& flags, SimulatedPlan read) {
  Plan& plan = read.plan;
  if (flags.in_network == "off") {
    for (LinkTier& tier : plan.cluster.tiers) tier.in_network = InNetwork::none;
  }
  if (!flags.chakra.empty() && plan.layout.world() > kMostChakraRanks) {
    return wrong_flag(
        "--chakra",
        fmt::format("{} ranks, but a trace has at most {}", plan.layout.world(), kMostChakraRanks),
        "simulate the plan on fewer GPUs");
  }
  const Diagnostics shared = check_files(flags);
  if (!shared.empty()) return shared;
  const Diagnostics failures = failure_problems(flags, plan);
  if (!failures.empty()) return failures;
  const Diagnostics long_step = too_many_operations(plan, options_of(flags).granularity);
  if (!long_step.empty()) return long_step;
  const std::vector<std::string> hanging = sim::hanging_at(plan, options_of(flags));
  if (hanging.empty()) return read;
  return wrong_flag("--one-connection",
                    fmt::format("the step never ends: {} operations wait for one another, first {}",
                                hanging.size(), hanging.front()),
                    "in one queue, a message that waits for its receiver blocks the operations "
                    "after it: leave the flag out");
}

}  // namespace shardwise::cli
