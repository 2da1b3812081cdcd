#include "planner/export/launch/accelerate_flags.h"

#include <algorithm>

namespace shardwise {

std::optional<AccelerateKey> accelerate_key(const LauncherFlag& flag) {
  if (!flag.name.starts_with("--")) return std::nullopt;
  if (flag.name == "--use-fsdp") return AccelerateKey{"distributed_type", "FSDP"};
  if (flag.name == "--multi-gpu") return AccelerateKey{"distributed_type", "MULTI_GPU"};
  if (flag.name == "--config-file") {
    return AccelerateKey{std::string(kNamesConfiguration), flag.value};
  }
  if (flag.name == "--use-deepspeed") return AccelerateKey{"distributed_type", "DEEPSPEED"};
  if (flag.name == "--use-parallelism-config") {
    return AccelerateKey{std::string(kUsesParallelismConfig), "true"};
  }
  std::string key = flag.name.substr(2);
  std::ranges::replace(key, '-', '_');
  if (key.starts_with("fsdp_")) return AccelerateKey{"fsdp_config." + key, flag.value};
  if (key.starts_with("parallelism_config_")) {
    return AccelerateKey{"parallelism_config." + key, flag.value};
  }
  for (const char* known :
       {"deepspeed_config_file", "zero_stage", "gradient_accumulation_steps", "gradient_clipping",
        "offload_optimizer_device", "offload_param_device"}) {
    if (key == known) return AccelerateKey{"deepspeed_config." + key, flag.value};
  }
  for (const char* known :
       {"mixed_precision", "num_processes", "num_machines", "machine_rank", "rdzv_backend"}) {
    if (key == known) return AccelerateKey{key, flag.value};
  }
  return std::nullopt;
}

}  // namespace shardwise
