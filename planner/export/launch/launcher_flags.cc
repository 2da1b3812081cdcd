#include "planner/export/launch/launcher_flags.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace shardwise {
namespace {

/// Flags of launchers that take no value; of others the next word is theirs.
constexpr auto kSwitches = std::to_array<std::string_view>({"--standalone",
                                                            "--no-python",
                                                            "--run-path",
                                                            "--use-env",
                                                            "--virtual-local-rank",
                                                            "--quiet",
                                                            "--cpu",
                                                            "--multi-gpu",
                                                            "--tpu",
                                                            "--ipex",
                                                            "--use-xpu",
                                                            "--use-mps-device",
                                                            "--use-deepspeed",
                                                            "--use-fsdp",
                                                            "--use-parallelism-config",
                                                            "--use-megatron-lm",
                                                            "--dynamo-use-fullgraph",
                                                            "--dynamo-use-dynamic",
                                                            "--enable-cpu-affinity",
                                                            "--same-network",
                                                            "--tpu-cluster",
                                                            "--no-tpu-cluster",
                                                            "--tpu-use-sudo",
                                                            "--debug",
                                                            "--no-local-rank",
                                                            "--no-ssh",
                                                            "--no-ssh-check",
                                                            "--force-multi",
                                                            "--save-pid",
                                                            "--bind-cores-to-rank",
                                                            "--elastic-training",
                                                            "--help",
                                                            "--version",
                                                            "--label",
                                                            "--unbuffered",
                                                            "--exclusive",
                                                            "--overlap",
                                                            "--exact",
                                                            "--parsable",
                                                            "--requeue",
                                                            "--no-requeue",
                                                            "--hold",
                                                            "--test-only",
                                                            "--overcommit",
                                                            "--oversubscribe",
                                                            "--contiguous",
                                                            "--verbose",
                                                            "--pty",
                                                            "--multi-prog",
                                                            "--no-kill",
                                                            "--no-container-mount-home",
                                                            "-q",
                                                            "-h",
                                                            "-l",
                                                            "-u",
                                                            "-K",
                                                            "-v",
                                                            "-Q",
                                                            "-O",
                                                            "-s",
                                                            "-H",
                                                            "-I"});

}  // namespace

bool take_launcher_flag(Launcher launcher, const std::vector<ShellWord>& words, std::size_t& at,
                        LauncherFlags& flags) {
  const std::string& text = words[at].text;
  if (!text.starts_with('-') || text.size() < 2) return false;
  LauncherFlag flag{text.substr(0, text.find('=')), "", words[at].line, words[at].column};
  std::ranges::replace(flag.name, '_', '-');
  const bool host_file = launcher == Launcher::deepspeed && flag.name == "-H";
  const bool is_switch = !host_file && std::ranges::find(kSwitches, flag.name) != kSwitches.end();
  if (const std::size_t equals = text.find('='); equals != std::string::npos) {
    flag.value = text.substr(equals + 1);
  } else if (text[1] != '-' && text.size() > 2 && (text[1] == 'N' || text[1] == 'n') &&
             text[2] >= '0' && text[2] <= '9') {
    flag.value = text.substr(2);  // srun -N4
    flag.name.resize(2);
  } else if (!is_switch && at + 1 < words.size()) {
    flag.value = words[++at].text;
  }
  flags.push_back(std::move(flag));
  return true;
}

const LauncherFlag* find_flag(const LauncherFlags& flags,
                              std::initializer_list<const char*> names) {
  const auto at = std::find_if(flags.rbegin(), flags.rend(), [&](const LauncherFlag& each) {
    return std::ranges::find(names, each.name) != names.end();
  });
  return at == flags.rend() ? nullptr : &*at;
}

std::optional<LauncherFlag> gpus_of_node(const LauncherFlags& flags) {
  const LauncherFlag* flag = find_flag(flags, {"--gpus-per-node"});
  if (flag == nullptr) {
    flag = find_flag(flags, {"--gres"});
    if (flag == nullptr || !flag->value.starts_with("gpu:")) return std::nullopt;
  }
  LauncherFlag number = *flag;
  number.value = number.value.substr(number.value.rfind(':') + 1);  // h100:8
  return number;
}

bool is_open(std::string_view value) {
  return value.empty() || value.find_first_of("$`") != std::string_view::npos;
}

}  // namespace shardwise
