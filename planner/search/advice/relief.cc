#include "planner/search/advice/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/legality/legality.h"
#include "planner/search/advice/why_not.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

/// Fields that the usual space leaves one value, or few, where others may need less memory.
constexpr std::array<const char*, 7> kSparing = {"store_param_remainders",
                                                 "offload_optimizer",
                                                 "offload_activations",
                                                 "fp32_gradients",
                                                 "double_buffer",
                                                 "cp",
                                                 "tp"};

constexpr std::int64_t kMostTimes = 256;  // as many GPUs
constexpr std::int64_t kMostCounts = 16;  // between one count and twice as many

/// For one layout, quickly.
SearchRequest for_one(const SearchRequest& request) {
  SearchRequest changed = request;
  changed.top = 1;
  changed.front = false;
  changed.objective = Objective::step_time;
  changed.progress = nullptr;
  return changed;
}

/// Tries counts of GPUs, in the usual space: the full one of hundreds of GPUs takes minutes each.
class GpuTrials {
 public:
  GpuTrials(const SearchRequest& request, const std::function<void(const std::string&)>& say)
      : request_(for_one(request)), narrowed_(request.breadth == Breadth::full), say_(say) {
    request_.breadth = Breadth::usual;
  }

  /// Nothing where no layout fits. Learns how many GPUs it takes at least.
  std::optional<Relief> at(std::int64_t gpus) {
    const Result<ClusterSpec> cluster = with_gpus(*request_.cluster, gpus);
    reached_ = cluster.ok();
    if (!reached_) return std::nullopt;
    SearchRequest changed = request_;
    changed.cluster = &*cluster;
    std::string text = fmt::format("--gpus {}{}", gpus, narrowed_ ? " --space usual" : "");
    say_(text);
    const Result<SearchResult> found = search(changed);
    if (!found) return std::nullopt;
    if (!found->best.empty()) return Relief{std::move(text), found->best.front(), gpus};
    learn(*found, gpus);
    return std::nullopt;
  }
  bool reached() const { return reached_; }
  std::int64_t least() const { return least_; }

 private:
  /// Memory of a GPU falls no faster than the number of GPUs grows.
  void learn(const SearchResult& found, std::int64_t gpus) {
    if (!found.risky.empty() || !found.smallest) return;
    const double times = found.smallest->cost.needed / found.usable;
    least_ = std::max(least_, static_cast<std::int64_t>(static_cast<double>(gpus) * times));
  }

  SearchRequest request_;
  bool narrowed_;
  const std::function<void(const std::string&)>& say_;
  bool reached_ = true;
  std::int64_t least_ = 0;
};

/// Keeps the better of what it has and what `request` finds.
void consider(std::optional<Relief>& best, const SearchRequest& request, std::string text) {
  const Result<SearchResult> found = search(request);
  if (!found || found->best.empty()) return;
  const auto gpu_time = [](const Relief& r) {
    return r.best.cost.step_time * static_cast<double>(r.gpus);
  };
  Relief relief = {std::move(text), found->best.front(), request.cluster->gpus};
  if (!best || gpu_time(relief) < gpu_time(*best)) best = std::move(relief);
}

}  // namespace

std::optional<Relief> cheapest_relief(const SearchRequest& request,
                                      const std::function<void(const std::string&)>& say) {
  std::optional<Relief> best;
  SearchRequest changed = for_one(request);
  const auto locked = [&](const std::string& key) {
    return std::ranges::any_of(request.locks, [&](const auto& lock) { return lock.first == key; });
  };
  for (const char* key : kSparing) {
    const bool opened = std::ranges::find(request.opened, key) != request.opened.end();
    if (request.breadth == Breadth::full || opened || locked(key)) continue;
    changed.opened.emplace_back(key);
    const std::string text = fmt::format("--open {}", key);
    say(text);
    consider(best, changed, text);
    changed.opened.pop_back();
  }
  for (std::size_t i = 0; i < request.locks.size(); ++i) {
    const std::string text =
        fmt::format("without --lock {}={}", request.locks[i].first, request.locks[i].second);
    changed.locks.erase(changed.locks.begin() + static_cast<std::ptrdiff_t>(i));
    say(text);
    consider(best, changed, text);
    changed.locks = request.locks;
  }
  if (request.most_memory > Bytes(0)) {
    changed.most_memory = Bytes(0);
    say("without --max-memory");
    consider(best, changed, "without --max-memory");
    changed.most_memory = request.most_memory;
  }
  return best;
}

std::optional<Relief> fewest_gpus(const SearchRequest& request,
                                  const std::function<void(const std::string&)>& say) {
  GpuTrials trials(request, say);
  const std::int64_t now = request.cluster->gpus;
  const std::int64_t node = request.cluster->gpus_per_node;
  std::int64_t most = 2 * now;
  std::optional<Relief> found;
  for (; most <= kMostTimes * now; most *= 2) {
    // Counts that are surely too few cost no search.
    if (most < trials.least()) continue;
    found = trials.at(most);
    if (found || !trials.reached()) break;
  }
  if (!found && trials.reached()) return std::nullopt;
  // Between the last count that was too few and this one, or all that the cluster reaches.
  const std::int64_t nodes = ceil_div(most - most / 2, node);
  const std::int64_t step = node * std::max<std::int64_t>(1, nodes / kMostCounts);
  for (std::int64_t gpus = (most / 2 / node + 1) * node; gpus < most; gpus += step) {
    if (gpus < trials.least()) continue;
    const std::optional<Relief> fewer = trials.at(gpus);
    if (fewer) return fewer;
    if (!trials.reached()) break;
  }
  return found;
}

std::string to_string(const Relief& relief) {
  return fmt::format("{}: {}, {} a step", relief.text, format_bytes(relief.best.cost.point),
                     format_seconds(relief.best.cost.step_time));
}

Diagnostics why_none_is_legal(const SearchRequest& request) {
  const EngineProfile& engine = *request.engines.front();
  Layout plain;
  plain.zero_stage = static_cast<std::int8_t>(engine.zero_stages.back());
  plain.dp_shard = static_cast<std::int32_t>(request.cluster->gpus);
  return check_layout(*request.model, *request.cluster, *request.job, engine,
                      with_values(plain, request.cluster->gpus, request.locks));
}

}  // namespace shardwise
