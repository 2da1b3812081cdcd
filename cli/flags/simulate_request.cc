#include "cli/flags/simulate_request.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "cli/flags/output_flags.h"
#include "cli/flags/simulate_files.h"
#include "planner/question/flags.h"

namespace shardwise::cli {
namespace {

/// Flags whose values a plan file has already.
Diagnostics fixed_by_file(const SimulateFlags& flags) {
  Diagnostics problems = sim::fixed_by_plan(flags.asked);
  const std::string& plan = flags.asked.plan;
  if (plan.empty()) return problems;
  if (flags.growth > 0) problems.push_back(sim::fixed_by_plan("--growth", plan));
  return problems;
}

/// No output is an input or another output.
Diagnostics check_simulate_files(const SimulateFlags& flags) {
  std::vector<NamedFile> inputs = files_of(flags.asked.job);
  inputs.push_back({"PLAN", flags.asked.plan});
  inputs.push_back({"--import", flags.import});
  const std::vector<NamedFile> outputs = {
      {"--output", flags.output}, {"--trace", flags.trace}, {"--svg", flags.svg}};
  for (const NamedFile& output : outputs) {
    if (output.path.empty() || flags.chakra.empty()) continue;
    const std::string name = std::filesystem::path(output.path).filename();
    const bool of_chakra = name == "comm_groups.json" || name.ends_with(".et");
    if (!of_chakra || !is_inside(output.path, flags.chakra)) continue;
    return {wrong_flag(output.flag, output.path + " is a name of the files of --chakra",
                       "give another file")};
  }
  return prepare_outputs(outputs, inputs, flags.screen.json);
}

}  // namespace

bool takes_best(const SimulateFlags& flags) {
  const sim::AskedStep& asked = flags.asked;
  return asked.plan.empty() && flags.import.empty() && flags.growth == 0 &&
         given_flags(asked.layout).empty() && !asked.job.model.empty() &&
         !asked.job.cluster.empty();
}

Result<sim::PlannedStep> planned_step(const SimulateFlags& flags) {
  Diagnostics fixed = fixed_by_file(flags);
  if (!fixed.empty()) return fixed;
  Result<sim::PlannedStep> read = sim::read_step(flags.asked);
  if (!read) return read;
  return checked_step(flags, *std::move(read));
}

Result<sim::PlannedStep> checked_step(const SimulateFlags& flags, sim::PlannedStep read) {
  Plan& plan = read.plan;
  sim::set_network(flags.asked, plan);
  if (!flags.chakra.empty() && plan.layout.world() > kMostChakraRanks) {
    return wrong_flag(
        "--chakra",
        fmt::format("{} ranks, but a trace has at most {}", plan.layout.world(), kMostChakraRanks),
        "simulate the plan on fewer GPUs");
  }
  Diagnostics problems = check_simulate_files(flags);
  if (problems.empty()) problems = sim::step_problems(flags.asked, plan);
  if (!problems.empty()) return problems;
  return read;
}

}  // namespace shardwise::cli
