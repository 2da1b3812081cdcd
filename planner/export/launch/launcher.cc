#include "planner/export/launch/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/export/launch/accelerate_flags.h"
#include "planner/export/launch/deepspeed_ranks.h"
#include "planner/export/launch/torchtitan_script.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Launcher launcher_of(std::string_view word) {
  constexpr std::pair<std::string_view, Launcher> kNames[] = {
      {"torchrun", Launcher::torchrun},
      {"torch.distributed.run", Launcher::torchrun},
      {"torch.distributed.launch", Launcher::torchrun},
      {"accelerate", Launcher::accelerate},
      {"accelerate.commands.launch", Launcher::accelerate},
      {"deepspeed", Launcher::deepspeed},
      {"deepspeed.launcher.runner", Launcher::deepspeed},
      {"srun", Launcher::tasks},
      {"mpirun", Launcher::tasks},
      {"mpiexec", Launcher::tasks},
  };
  const std::string_view name = base_name(word);
  for (const auto& [known, launcher] : kNames) {
    if (name == known) return launcher;
  }
  const bool python = name == "python" || (name.starts_with("python") && name.size() > 6 &&
                                           name[6] >= '2' && name[6] <= '9');
  return python ? Launcher::python : Launcher::none;
}

/// Reads the launchers of a command from the left.
class LaunchReader {
 public:
  LaunchReader(const ShellCommand& command, const std::string& file, const GivenFiles& given)
      : words_(command.words), environment_(command.environment), file_(file), given_(given) {
    for (std::size_t i = 0; i < command.directives.size(); ++i) {
      take_launcher_flag(Launcher::tasks, command.directives, i, tasks_);
    }
  }

  Launch read() {
    made_.arguments = end();
    count();
    if (made_.ranks == 0) std::ranges::move(pending_, std::back_inserter(made_.notes));
    return std::move(made_);
  }

 private:
  std::string_view word(std::size_t at) const {
    return at < words_.size() ? std::string_view(words_[at].text) : std::string_view();
  }

  /// How many words there are to the end of the program's name.
  std::size_t end() {
    if (word(0).starts_with("--")) return 0;
    std::size_t at = 0;
    std::size_t program = 0;  // of srun, if no launcher and no script follows
    while (at < words_.size()) {
      const Launcher launcher = launcher_of(word(at));
      if (launcher == Launcher::tasks) {
        in_tasks_ = true;
      } else if (launcher != Launcher::none) {
        ++at;
        if (const std::optional<std::size_t> found = program_of(launcher, at)) return *found;
        continue;
      } else if (word(at).ends_with(".py") || is_torchtitan_script(word(at))) {
        return at + 1;
      } else if (in_tasks_ && program == 0 &&
                 !take_launcher_flag(Launcher::tasks, words_, at, tasks_)) {
        program = at + 1;
      }
      ++at;
    }
    if (program > 0) return program;
    // An unknown program: its flags begin behind its name.
    std::size_t first = 0;
    while (first < words_.size() && !word(first).starts_with("--")) ++first;
    return in_tasks_ ? words_.size() : first;
  }

  /// Reads the flags of a launcher, from `at` on. \returns the words to the end of its program;
  /// nothing where another launcher follows, at which `at` then is
  std::optional<std::size_t> program_of(Launcher launcher, std::size_t& at) {
    in_tasks_ = false;
    if (launcher == Launcher::accelerate && word(at) == "launch") ++at;
    LauncherFlags flags;
    for (; at < words_.size(); ++at) {
      const std::string_view text = word(at);
      const bool module = text == "-m" || text == "--module";
      if (module) ++at;
      if (launcher_of(word(at)) != Launcher::none) {
        keep(launcher, std::move(flags));
        return std::nullopt;
      }
      if (module && launcher != Launcher::python && launcher != Launcher::torchrun) {
        --at;  // a switch of the others
        continue;
      }
      if (module) break;
      if (launcher == Launcher::python && text.starts_with('-')) {
        if (text == "-X" || text == "-W") ++at;
      } else if (!take_launcher_flag(launcher, words_, at, flags)) {
        const std::size_t script = script_behind(at);
        if (script == 0) break;
        unknown_words(at);
        at = script;
        break;
      }
    }
    keep(launcher, std::move(flags));
    return std::min(at + 1, words_.size());
  }

  /// Where a script follows $MORE, which nobody set, before any flag; 0 where it does not.
  std::size_t script_behind(std::size_t at) const {
    if (!word(at).starts_with('$')) return 0;
    for (std::size_t i = at + 1; i < words_.size() && !word(i).starts_with("--"); ++i) {
      if (word(i).ends_with(".py")) return i;
    }
    return 0;
  }

  void unknown_words(std::size_t at) {
    open_words_ = true;
    pending_.push_back({file_, words_[at].line, words_[at].column, "",
                        fmt::format("words of the launcher are not known: {}", shown(word(at))),
                        "give the ranks as --gpus"});
  }

  void keep(Launcher launcher, LauncherFlags flags) {
    if (launcher == Launcher::python) return;
    launched_ = true;
    launcher_ = launcher;
    flags_ = std::move(flags);
  }

  /// The count that a flag states. \returns 0 where it is absent or not known
  std::int64_t count_of(const LauncherFlag* flag) {
    if (flag == nullptr) return 0;
    if (flag->value == "gpu" || flag->value == "auto") return 0;  // torchrun asks the node
    if (is_open(flag->value)) {
      open_ = true;
      say(pending_, *flag,
          fmt::format("{} is not known", flag->value.empty() ? "its value" : shown(flag->value)),
          "give the ranks as --gpus");
      return 0;
    }
    const bool whole = flag->value.find_first_not_of("0123456789") == std::string::npos;
    const std::optional<std::int64_t> number = parse_integer(flag->value);
    if (whole && number && *number >= 1 && *number <= kMostGpus) return *number;
    say(made_.problems, *flag,
        fmt::format("{} is not a whole number from 1 to {}", shown(flag->value), kMostGpus),
        fmt::format("{} takes one number", flag->name));
    return 0;
  }

  void say(Diagnostics& where, const LauncherFlag& flag, const std::string& message,
           const std::string& hint) const {
    where.push_back({file_, flag.line, flag.column, flag.name, message, hint});
  }

  void count() {
    const LauncherFlag* nodes_flag = nullptr;
    const LauncherFlag* each_flag = nullptr;
    const LauncherFlag* all_flag = nullptr;
    if (launcher_ == Launcher::torchrun) {
      each_flag = find_flag(flags_, {"--nproc-per-node"});
      nodes_flag = find_flag(flags_, {"--nnodes"});
    } else if (launcher_ == Launcher::deepspeed) {
      each_flag = find_flag(flags_, {"--num-gpus", "--num-accelerators"});
      nodes_flag = find_flag(flags_, {"--num-nodes"});
      const HostFile* hosts = given_.hosts ? &*given_.hosts : nullptr;
      if (auto counted = deepspeed_ranks(flags_, hosts, file_)) {
        std::ranges::move(counted->problems, std::back_inserter(made_.problems));
        std::ranges::move(counted->notes, std::back_inserter(pending_));
        return counted->ranks > 0 ? set(counted->ranks) : void();
      }
      if (each_flag == nullptr && nodes_flag == nullptr) {
        if (const std::int64_t visible = visible_devices()) return set(visible);
      }
    } else if (launcher_ == Launcher::accelerate) {
      all_flag = find_flag(flags_, {"--num-processes"});
      read_accelerate();
    }
    const std::int64_t all = count_of(all_flag);
    std::int64_t each = count_of(each_flag);
    std::int64_t nodes = count_of(nodes_flag);
    if (all == 0) {
      const std::int64_t per_task = count_of(find_flag(tasks_, {"--ntasks-per-node"}));
      const std::optional<LauncherFlag> gpus = gpus_of_node(tasks_);
      const std::int64_t of_node = gpus ? count_of(&*gpus) : 0;
      const std::int64_t task_nodes = count_of(find_flag(tasks_, {"--nodes", "-N"}));
      const std::int64_t tasks = count_of(find_flag(tasks_, {"--ntasks", "-n", "-np", "--np"}));
      if (!launched_ && tasks > 0) return set(tasks);
      if (each == 0) each = launched_ || per_task == 0 ? of_node : per_task;
      if (nodes == 0) nodes = task_nodes;
    }
    if (all > 0) return set(all);
    if (each == 0) return;
    // Without a word on nodes there is one, unless it is said and not known.
    if (open_words_ || (nodes == 0 && open_)) return;
    set(each * std::max<std::int64_t>(nodes, 1));
  }

  void set(std::int64_t ranks) {
    if (ranks > kMostGpus) {
      made_.problems.push_back({file_, words_.empty() ? 0 : words_.front().line, 0, "",
                                fmt::format("starts {} ranks: more than {}", ranks, kMostGpus),
                                "fewer nodes or ranks on a node"});
    } else {
      made_.ranks = ranks;
    }
  }

  /// GPUs that CUDA_VISIBLE_DEVICES leaves to a command without other counts; 0 without it.
  std::int64_t visible_devices() const {
    constexpr std::string_view kName = "CUDA_VISIBLE_DEVICES=";
    std::int64_t count = 0;
    for (const ShellWord& each : environment_) {
      if (!each.text.starts_with(kName)) continue;
      const std::string_view devices = std::string_view(each.text).substr(kName.size());
      count = is_open(devices) ? 0 : std::ranges::count(devices, ',') + 1;
    }
    return count;
  }

  void read_accelerate() {
    constexpr std::array<std::string_view, 3> kOfRanks = {"--main-process-ip",
                                                          "--main-process-port", "--quiet"};
    for (const LauncherFlag& each : flags_) {
      if (const auto key = accelerate_key(each)) {
        made_.accelerate.push_back(each);
        if (key->name == kNamesConfiguration) {
          if (given_.has(each.value)) continue;
          say(made_.notes, each, fmt::format("{} is not read", shown(each.value)),
              "give the file too");
          continue;
        }
        // Each node has its own rank, and count() says what is not known of the processes.
        if (is_open(key->value) && key->name != "machine_rank" && key->name != "num_processes") {
          say(made_.notes, each, fmt::format("{} is not known", shown(key->value)),
              "set it in the script");
        }
      } else if (each.name.starts_with("--") &&
                 std::ranges::find(kOfRanks, each.name) == kOfRanks.end()) {
        say(made_.notes, each, "is not read from a command", "give accelerate's YAML");
      }
    }
  }

  const std::vector<ShellWord>& words_;
  const std::vector<ShellWord>& environment_;
  const std::string& file_;
  const GivenFiles& given_;
  Launch made_;
  LauncherFlags tasks_;  // of #SBATCH lines, then of srun
  LauncherFlags flags_;  // of the innermost other launcher
  Launcher launcher_ = Launcher::none;
  Diagnostics pending_;    // notes, if the ranks are not known in the end
  bool in_tasks_ = false;  // srun's flags are being read
  bool launched_ = false;
  bool open_ = false;  // a count is not known
  bool open_words_ = false;
};

}  // namespace

bool GivenFiles::has(std::string_view path) const {
  return std::ranges::any_of(
      names, [&](const std::string& each) { return base_name(each) == base_name(path); });
}

Launch read_launch(const ShellCommand& command, const std::string& file, const GivenFiles& given) {
  return LaunchReader(command, file, given).read();
}

bool starts_program(const std::vector<ShellWord>& words) {
  constexpr auto kOthers = std::to_array<std::string_view>(
      {"echo",  "printf",  "cat", "cp",   "mv",    "rm",  "ls",      "chmod",  "sed", "grep",
       "which", "command", "pip", "pip3", "conda", "git", "apt-get", "module", "ps",  "pkill"});
  if (words.empty() ||
      std::ranges::find(kOthers, std::string_view(words.front().text)) != kOthers.end()) {
    return false;
  }
  return std::ranges::any_of(words, [](const ShellWord& each) {
    return launcher_of(each.text) != Launcher::none || each.text.ends_with(".py") ||
           is_torchtitan_script(each.text);
  });
}

}  // namespace shardwise
