#include "planner/search/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/legality/legality.h"
#include "planner/search/why_not.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"

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
  SearchRequest changed = request;
  changed.top = 1;
  changed.front = false;
  changed.objective = Objective::step_time;
  changed.progress = nullptr;
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
  const Result<ClusterSpec> larger = with_gpus(*request.cluster, 2 * request.cluster->gpus);
  if (larger) {
    changed.cluster = &*larger;
    const std::string text = fmt::format("--gpus {}", larger->gpus);
    say(text);
    consider(best, changed, text);
  }
  return best;
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
