#include "planner/engines/executed.h"

#include <algorithm>
#include <array>

namespace shardwise {

std::span<const ExecutedField> executed_fields() {
  static constexpr std::string_view kData = "data parallelism is: dp_shard and dp_replicate";
  static constexpr std::array<ExecutedField, 8> kFields = {{
      {"tp", "1", kData, false},
      {"cp", "1", kData},
      {"pp", "1", kData, false},
      {"vpp", "1", kData, false},
      {"ep", "1", kData},
      {"offload_optimizer", "false", "false is"},
      {"offload_activations", "false", "false is"},
      {"recompute_interval", "1", "1 is"},
  }};
  return kFields;
}

std::span<const std::string_view> executed_engines() {
  static constexpr std::array<std::string_view, 5> kEngines = {"shardwise", "megatron_ddp",
                                                               "megatron_fsdp", "fsdp2", "fsdp1"};
  return kEngines;
}

bool executor_trains_on(const ClusterSpec& cluster) { return cluster.gpu.vendor == "cpu"; }

std::vector<ExecutedField> executed_fields_besides(
    const std::vector<std::pair<std::string, std::string>>& locks,
    const std::vector<std::string>& opened) {
  std::vector<ExecutedField> held;
  for (const ExecutedField& field : executed_fields()) {
    const bool locked =
        std::ranges::any_of(locks, [&](const auto& lock) { return lock.first == field.key; });
    const bool wide = std::ranges::find(opened, field.key) != opened.end();
    if (!locked && !wide) held.push_back(field);
  }
  return held;
}

}  // namespace shardwise
