#include "planner/export/launch/deepspeed_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

using Slots = std::set<std::int64_t>;  // empty: all of the host

/// "worker-0@worker-1:0,2" by host; nothing where it is not of that form.
std::optional<std::map<std::string, Slots>> hosts_of(std::string_view text) {
  std::map<std::string, Slots> made;
  for (const std::string& node : split_at(text, '@')) {
    const std::vector<std::string> both = split_at(node, ':');
    if (both.size() > 2) return std::nullopt;
    Slots& slots = made[both.front()];
    if (both.size() == 1) continue;
    for (const std::string& each : split_at(both.back(), ',')) {
      const std::optional<std::int64_t> slot = parse_integer(each);
      if (!slot || *slot < 0 || *slot > kMostGpus) return std::nullopt;
      slots.insert(*slot);
    }
  }
  return made;
}

class Counter {
 public:
  Counter(const LauncherFlags& flags, const HostFile* hosts, const std::string& file)
      : hosts_(hosts),
        file_(file),
        include_(stated(flags, {"--include", "-i"})),
        exclude_(stated(flags, {"--exclude", "-e"})),
        host_file_(stated(flags, {"--hostfile", "-H"})),
        nodes_(find_flag(flags, {"--num-nodes"})),
        gpus_(find_flag(flags, {"--num-gpus", "--num-accelerators"})) {
    if (hosts == nullptr) return;
    for (const Host& each : hosts->hosts) by_name_[each.name] = &each;
  }

  std::optional<DeepspeedRanks> count() {
    const LauncherFlag* filter = include_ != nullptr ? include_ : exclude_;
    const LauncherFlag* sizes = nodes_ != nullptr ? nodes_ : gpus_;
    if (filter != nullptr && sizes != nullptr) {
      say(made_.problems, *sizes, fmt::format("deepspeed refuses it beside {}", filter->name),
          "leave out one of the two");
    } else if (include_ != nullptr && exclude_ != nullptr) {
      say(made_.problems, *exclude_, "deepspeed refuses it beside --include",
          "leave out one of the two");
    } else if (filter != nullptr) {
      count_filtered(*filter);
    } else if (hosts_ != nullptr) {
      count_hosts();
    } else if (host_file_ != nullptr && (nodes_ == nullptr || gpus_ == nullptr)) {
      not_known(*host_file_, fmt::format("{} is not read", shown(host_file_->value)));
    } else {
      return std::nullopt;
    }
    return std::move(made_);
  }

 private:
  /// A flag with a value: an empty one is as none.
  static const LauncherFlag* stated(const LauncherFlags& flags,
                                    std::initializer_list<const char*> names) {
    const LauncherFlag* flag = find_flag(flags, names);
    return flag == nullptr || flag->value.empty() ? nullptr : flag;
  }

  void say(Diagnostics& where, const LauncherFlag& flag, std::string message,
           std::string hint) const {
    where.push_back(
        {file_, flag.line, flag.column, flag.name, std::move(message), std::move(hint)});
  }

  void not_known(const LauncherFlag& flag, std::string message) {
    say(made_.notes, flag, std::move(message), "give the hostfile too, or the ranks as --gpus");
  }

  const Host* find(const std::string& name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second;
  }

  void count_filtered(const LauncherFlag& filter) {
    if (is_open(filter.value)) {
      return not_known(filter, fmt::format("{} is not known", shown(filter.value)));
    }
    const auto named = hosts_of(filter.value);
    if (!named) {
      return say(made_.problems, filter,
                 fmt::format("{} is no list of hosts and slots", shown(filter.value)),
                 "HOST:0,1@HOST:2, a host without slots is all of it");
    }
    std::int64_t ranks = 0;
    for (const auto& [name, slots] : *named) {
      if (hosts_ == nullptr && (slots.empty() || exclude_ != nullptr)) {
        return not_known(filter, fmt::format("how many GPUs {} has is not known",
                                             exclude_ != nullptr ? "the job" : shown(name)));
      }
      if (hosts_ != nullptr && !check(filter, name, slots)) return;
      ranks += slots.empty() ? find(name)->slots : static_cast<std::int64_t>(slots.size());
    }
    made_.ranks = exclude_ == nullptr ? ranks : all_slots() - ranks;
    if (made_.ranks <= 0) say(made_.problems, filter, "leaves no rank", "leave out fewer");
  }

  /// Whether the hostfile has the host and the slots.
  bool check(const LauncherFlag& filter, const std::string& name, const Slots& slots) {
    const Host* host = find(name);
    if (host != nullptr && (slots.empty() || *slots.rbegin() < host->slots)) return true;
    if (host == nullptr) {
      std::vector<std::string> names;
      for (const Host& each : hosts_->hosts) names.push_back(shown(each.name));
      if (names.size() > 5) names.resize(5);
      say(made_.problems, filter, fmt::format("{} has no host {}", hosts_->file, shown(name)),
          fmt::format("one of its hosts: {}", fmt::join(names, ", ")));
    } else {
      say(made_.problems, filter,
          fmt::format("slot {} of {}, which has {}", *slots.rbegin(), shown(name), host->slots),
          "slots count from 0");
    }
    return false;
  }

  std::int64_t all_slots() const {
    std::int64_t slots = 0;
    for (const Host& each : hosts_->hosts) slots += each.slots;
    return slots;
  }

  /// The value of a count; 0 where it is not there or not known.
  std::int64_t number(const LauncherFlag* flag) {
    if (flag == nullptr) return 0;
    if (is_open(flag->value)) {
      open_ = true;
      not_known(*flag, fmt::format("{} is not known", shown(flag->value)));
      return 0;
    }
    const std::optional<std::int64_t> made = parse_integer(flag->value);
    if (made && *made <= kMostGpus) return std::max<std::int64_t>(*made, 0);
    say(made_.problems, *flag, fmt::format("{} is no count", shown(flag->value)),
        fmt::format("{} takes one number", flag->name));
    return 0;
  }

  void count_hosts() {
    const std::int64_t nodes = number(nodes_);
    const std::int64_t gpus = number(gpus_);
    if (open_ || !made_.problems.empty()) return;
    const auto all = static_cast<std::int64_t>(hosts_->hosts.size());
    const std::int64_t used = nodes > 0 ? std::min(nodes, all) : all;
    for (std::int64_t i = 0; i < used; ++i) {
      made_.ranks += gpus > 0 ? gpus : hosts_->hosts[static_cast<std::size_t>(i)].slots;
    }
  }

  const HostFile* hosts_;
  std::map<std::string, const Host*> by_name_;
  const std::string& file_;
  const LauncherFlag* include_;
  const LauncherFlag* exclude_;
  const LauncherFlag* host_file_;
  const LauncherFlag* nodes_;
  const LauncherFlag* gpus_;
  bool open_ = false;
  DeepspeedRanks made_;
};

}  // namespace

std::optional<DeepspeedRanks> deepspeed_ranks(const LauncherFlags& flags, const HostFile* hosts,
                                              const std::string& file) {
  return Counter(flags, hosts, file).count();
}

}  // namespace shardwise
