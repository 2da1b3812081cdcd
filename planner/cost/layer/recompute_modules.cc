#include "planner/cost/layer/recompute_modules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "planner/cost/layer/layer_memory.h"

namespace shardwise {
namespace {

bool is_routed(const LayerSpec& layer) {
  return std::ranges::any_of(layer.operations,
                             [](const OperationSpec& op) { return op.kind == OpKind::router; });
}

struct Module {
  std::string_view name;
  std::vector<std::string> operations;
};

const std::array<Module, 4>& modules_with_names() {
  static const std::array<Module, 4> kModules = {{
      {"layernorm", {"attention_norm", "mlp_norm"}},
      {"mla_up_proj", {"self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.rope"}},
      {"moe_act", {"mlp.experts.activation"}},
      {"shared_experts", {"mlp.shared.gate_proj", "mlp.shared.up_proj", "mlp.shared.activation"}},
  }};
  return kModules;
}

/// Whether Megatron-Core runs `op` of `layer` again for `module`.
bool holds(std::string_view module, const LayerSpec& layer, const OperationSpec& op) {
  // The checkpointed part keeps its input; nobody keeps its output.
  if (module == "mlp") return op.name.starts_with("mlp.") && !is_routed(layer);
  if (module == "moe") return op.name.starts_with("mlp.") && is_routed(layer);
  const std::vector<std::string>& names = named_operations(module);
  if (module == "mla_up_proj") {
    const bool latent = std::ranges::find(layer.operations, "self_attn.kv_b_proj",
                                          &OperationSpec::name) != layer.operations.end();
    if (!latent) return false;
  }
  return std::ranges::find(names, op.name) != names.end();
}

/// Bytes that one layer of every kind keeps for backward.
std::int64_t kept_bytes(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                        const Layout& layout) {
  std::int64_t sum = 0;
  for (const LayerMemory& layer : layer_memories(model, job, engine, layout)) sum += layer.saved;
  return sum;
}

std::vector<std::string> block_operations(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.kinds) {
    if (layer.role == LayerRole::embedding || layer.role == LayerRole::head) continue;
    for (const OperationSpec& op : layer.operations) {
      if (std::ranges::find(names, op.name) == names.end()) names.push_back(op.name);
    }
  }
  return names;
}

}  // namespace

const std::vector<std::string>& recompute_modules() {
  static const std::vector<std::string> kModules = {
      "core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"};
  return kModules;
}

const std::vector<std::string>& named_operations(std::string_view module) {
  static const std::vector<std::string> kNone;
  const auto found = std::ranges::find(modules_with_names(), module, &Module::name);
  return found == modules_with_names().end() ? kNone : found->operations;
}

std::vector<std::string> operations_of_module(const ModelSpec& model, std::string_view module) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.kinds) {
    for (const OperationSpec& op : layer.operations) {
      if (!holds(module, layer, op)) continue;
      if (std::ranges::find(names, op.name) == names.end()) names.push_back(op.name);
    }
  }
  return names;
}

std::vector<IdleRecompute> idle_recompute(const ModelSpec& model, const JobSpec& job,
                                          const EngineProfile& engine, const Layout& layout) {
  std::vector<IdleRecompute> idle;
  if (layout.recompute == Recompute::full) return idle;
  const std::int64_t all = kept_bytes(model, job, engine, layout);
  const auto with = [&](std::vector<std::string> operations) {
    JobSpec other = job;
    other.recompute_operations = std::move(operations);
    return kept_bytes(model, other, engine, layout);
  };
  for (const std::string& name : job.recompute_operations) {
    std::vector<std::string> others = job.recompute_operations;
    std::erase(others, name);
    if (with(others) > all) continue;
    IdleRecompute found{name, ""};
    for (const std::string& partner : block_operations(model)) {
      if (std::ranges::find(job.recompute_operations, partner) != job.recompute_operations.end()) {
        continue;
      }
      std::vector<std::string> both = job.recompute_operations;
      both.push_back(partner);
      others.push_back(partner);
      const bool saves = with(both) < with(others);
      others.pop_back();
      if (!saves) continue;
      found.partner = partner;
      break;
    }
    idle.push_back(std::move(found));
  }
  return idle;
}

}  // namespace shardwise
