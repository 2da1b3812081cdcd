#include "executor/launch/run_checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "executor/launch/command.h"
#include "executor/launch/executable.h"
#include "executor/weights/save_weights.h"
#include "planner/files/atomic_file_set.h"
#include "planner/files/output_place.h"
#include "planner/legality/legality.h"

namespace shardwise::exec {
namespace {

std::string started_text(const Launcher& launcher) {
  return fmt::format("{} started {} process{}", name_of(launcher.kind), launcher.ranks,
                     launcher.ranks == 1 ? "" : "es");
}

}  // namespace

Diagnostics problems_of(const Plan& plan) {
  const Diagnostics illegal =
      check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  return illegal.empty() ? cannot_execute(plan) : illegal;
}

Diagnostics problems_of_ranks(const Plan& plan, const RunOptions& options,
                              const Launcher& launcher) {
  const std::int64_t world = plan.layout.world();
  const bool torchrun = launcher.kind == Launcher::Kind::torchrun;
  const bool others = launcher.ranks > 1 && launcher.kind != Launcher::Kind::local;
  if (others && options.ranks > 0) {
    return {wrong_use("--ranks", started_text(launcher),
                      "leave --ranks out; it starts threads in a single process")};
  }
  if (others && options.ranks_as != RanksAs::usual) {
    return {wrong_use("--ranks-as", started_text(launcher),
                      "leave --ranks-as out; it is for ranks that no launcher starts")};
  }
  // A process that torchrun started alone may be one of several whose WORLD_SIZE is wrong.
  if (launcher.ranks != world && (launcher.ranks > 1 || (torchrun && options.ranks == 0))) {
    const std::string threads =
        launcher.ranks == 1 ? fmt::format(", or --ranks {} for threads", world) : "";
    return {wrong_use(
        name_of(launcher.kind),
        fmt::format("{}, the plan is for {} ranks", started_text(launcher), world),
        fmt::format("start {}, or make a plan for {}{}", world, launcher.ranks, threads))};
  }
  if (options.ranks > 0 && options.ranks != world) {
    return {wrong_use("--ranks", fmt::format("the plan is for {} ranks", world),
                      fmt::format("--ranks {}, or a plan for {}", world, options.ranks))};
  }
  return {};
}

Diagnostics problems_of_outputs(const RunOptions& options) {
  Diagnostics problems;
  const std::pair<const char*, const std::string&> outputs[] = {
      {"--report", options.report}, {"--trace", options.trace}, {"--metrics", options.metrics}};
  for (const auto& [flag, path] : outputs) {
    if (!path.empty()) find_unwritable(flag, path, problems);
  }
  const std::vector<NamedFile> files = {{"--report", options.report},
                                        {"--trace", options.trace},
                                        {"--metrics", options.metrics},
                                        {"--save-weights", options.save_weights}};
  const Diagnostics shared = check_outputs(files, {{"PLAN", options.plan},
                                                   {"--data", options.data},
                                                   {"--tokenizer", options.tokenizer},
                                                   {"--init-from", options.init_from},
                                                   {"--resume", options.resume}});
  problems.insert(problems.end(), shared.begin(), shared.end());
  const std::string& folder = options.checkpoint_dir;
  const std::string planted = folder.empty() ? "" : find_output(folder).refusal();
  if (!planted.empty()) {
    problems.push_back(wrong_use("--checkpoint-dir", fmt::format("{} {}", folder, planted),
                                 "name another folder, or remove it first"));
  }
  for (const NamedFile& file : files) {
    const bool both = !file.path.empty() && !options.checkpoint_dir.empty();
    if (!both || !is_inside(file.path, options.checkpoint_dir)) continue;
    problems.push_back(wrong_use(
        file.flag, fmt::format("{} is in the folder of --checkpoint-dir", file.path),
        "name a place outside: the checkpoints of the run are written and removed there"));
  }
  for (const auto& [flag, path] : outputs) {
    const bool both = !path.empty() && !options.save_weights.empty();
    const std::filesystem::path name = std::filesystem::path(path).filename();
    if (!both || !is_file_of_weights(name) || !is_inside(path, options.save_weights)) continue;
    problems.push_back(wrong_use(flag,
                                 fmt::format("{} is a name of the files of --save-weights", path),
                                 "give another file"));
  }
  if (problems.empty()) reserve_standard_output(files);
  return problems;
}

}  // namespace shardwise::exec
