#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Names of Megatron-Core's --recompute-modules, sorted.
/// Source: NVIDIA/Megatron-LM@d98e8a64:megatron/core/transformer/transformer_config.py.
const std::vector<std::string>& recompute_modules();

/// Operations that Megatron-Core runs again for a module, whatever the model: of "layernorm",
/// "mla_up_proj", "moe_act" and "shared_experts"; of others none.
const std::vector<std::string>& named_operations(std::string_view module);

/// The operations of `model` that Megatron-Core runs again for `module`; empty when the model has
/// none of them, and for "core_attn", which is Recompute::selective: its output stays, as the next
/// product keeps it.
std::vector<std::string> operations_of_module(const ModelSpec& model, std::string_view module);

/// An operation that is named for recompute and saves nothing as the job stands.
struct IdleRecompute {
  std::string operation;
  std::string partner;  // naming this too saves memory; empty when no single one does
};

/// Operations of job.recompute_operations without which the layers of `model` keep no byte more.
std::vector<IdleRecompute> idle_recompute(const ModelSpec& model, const JobSpec& job,
                                          const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
