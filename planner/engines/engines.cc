#include "planner/engines/engines.h"

#include <array>
#include <utility>

#include "planner/engines/executed.h"

namespace shardwise {
namespace {

const std::vector<EngineProfile>& all_engines() {
  static const std::vector<EngineProfile> kEngines = {
      megatron_ddp(), megatron_fsdp(),   fsdp2(),     fsdp2_in_megatron(),
      fsdp1(),        pytorch_ddp(),     deepspeed(), megatron_deepspeed(),
      internevo(),    shardwise_engine()};
  return kEngines;
}

}  // namespace

EngineProfile variant(EngineProfile base, std::string name, std::string label) {
  base.variant_of = base.known_as();
  base.name = std::move(name);
  base.label = std::move(label);
  return base;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineProfile& engine : all_engines()) names.push_back(engine.name);
  return names;
}

const EngineProfile* find_engine(std::string_view name) {
  for (const EngineProfile& engine : all_engines()) {
    if (engine.name == name) return &engine;
  }
  return nullptr;
}

std::vector<const EngineProfile*> engines_of_today(const ClusterSpec& cluster) {
  std::vector<const EngineProfile*> engines;
  for (const EngineProfile& engine : all_engines()) {
    const bool ours = engine.known_as() == "shardwise";
    const bool by_name =
        engine.known_as() == "megatron_deepspeed" || engine.known_as() == "pytorch_ddp";
    const bool runs = executor_trains_on(cluster) ? ours : !ours;
    if (runs && !by_name) engines.push_back(&engine);
  }
  return engines;
}

}  // namespace shardwise
