#include "planner/export/launch/slurm_variables.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "planner/export/launch/launcher_flags.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

LauncherFlags launcher_flags(const std::vector<ShellWord>& words) {
  LauncherFlags flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    take_launcher_flag(Launcher::tasks, words, i, flags);
  }
  return flags;
}

/// The count of a flag; 0 where it is none.
std::int64_t count_of(const LauncherFlag* flag) {
  const std::optional<std::int64_t> count =
      flag == nullptr ? std::nullopt : parse_integer(flag->value);
  return count && *count > 0 && *count <= kMostGpus ? *count : 0;
}

}  // namespace

std::map<std::string, ShellWord> slurm_variables(const std::vector<ShellWord>& directives) {
  const LauncherFlags flags = launcher_flags(directives);
  std::map<std::string, ShellWord> made;
  const auto set = [&](std::initializer_list<const char*> names, std::int64_t count,
                       const LauncherFlag* flag) {
    if (count == 0 || flag == nullptr) return;
    for (const char* name : names) {
      made[name] = {std::to_string(count), flag->line, flag->column};
    }
  };
  const LauncherFlag* nodes = find_flag(flags, {"--nodes", "-N"});
  const LauncherFlag* each = find_flag(flags, {"--ntasks-per-node"});
  const LauncherFlag* all = find_flag(flags, {"--ntasks", "-n"});
  set({"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, count_of(nodes), nodes);
  set({"SLURM_NTASKS_PER_NODE"}, count_of(each), each);
  const std::int64_t tasks = all != nullptr ? count_of(all) : count_of(each) * count_of(nodes);
  set({"SLURM_NTASKS", "SLURM_NPROCS"}, tasks, all != nullptr ? all : each);
  const LauncherFlag* asked = find_flag(flags, {"--gpus-per-node"});
  set({"SLURM_GPUS_PER_NODE"}, count_of(asked), asked);
  const std::optional<LauncherFlag> gpus = gpus_of_node(flags);
  if (gpus) set({"SLURM_GPUS_ON_NODE"}, count_of(&*gpus), &*gpus);
  return made;
}

bool changes_slurm_counts(const std::vector<ShellWord>& words) {
  const auto srun = std::ranges::find_if(words, [](const ShellWord& each) {
    return std::string_view(each.text).substr(each.text.rfind('/') + 1) == "srun";
  });
  if (srun == words.end()) return false;
  const LauncherFlags flags = launcher_flags({srun + 1, words.end()});
  return find_flag(flags, {"--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node",
                           "--gpus-per-node", "--gres"}) != nullptr;
}

}  // namespace shardwise
