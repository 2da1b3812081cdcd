#include "planner/score/rows/row_engine.h"

#include <fmt/format.h>

#include "planner/engines/engines.h"

namespace shardwise {
namespace {

/// Ranks that hold copies of the same weights.
std::int64_t data_parallel(const Row& row) { return row.parallel.dp.value_or(2); }

std::string_view name_of_engine(const Row& row, RowEngine& engine, Notes& notes) {
  const std::string_view by = row.framework;
  const std::string_view strategy = row.parallel.strategy;
  engine.torchtitan = says(by, "torchtitan");
  engine.performance_recipe = says_any(by, "nemo", "bridge", "megascale");
  const bool plain_torch = engine.torchtitan || says_any(by, "torchtune", "torchao");
  const bool fsdp1 =
      says_any(by, "llm-foundry", "composer", "fms", "modalities", "litgpt", "lit-gpt", "fsdp1") ||
      says(strategy, "fsdp1");
  if (says_any(by, "deepspeed", "bigscience")) {
    engine.megatron_deepspeed = true;
    const bool first_zero = row.parallel.zero_stage.value_or(1) <= 1 && says(by, "megatron");
    return first_zero ? "megatron_deepspeed" : "deepspeed";
  }
  if (plain_torch || fsdp1) {
    if (data_parallel(row) == 1 && row.parallel.zero_stage.value_or(0) == 0) {
      notes.assume("one GPU without sharding, as FSDP1 NO_SHARD");
      return "fsdp1";
    }
    return says(strategy, "fsdp1") || !plain_torch ? "fsdp1" : "fsdp2";
  }
  if (says(by, "internevo")) {
    engine.megatron = !says(strategy, "fsdp");
    return "internevo";
  }
  if (says(strategy, "megatron-fsdp")) {
    engine.megatron = true;
    return "megatron_fsdp";
  }
  if (says_any(by, "megatron", "nemo", "primus", "megascale")) {
    engine.megatron = true;
    return "megatron_ddp";
  }
  if (says(by, "shardwise")) return "shardwise";
  if (says(by, "fsdp2")) return "fsdp2";
  if (says_any(by, "pytorch ddp", "distributeddataparallel")) return "pytorch_ddp";
  return "";
}

int zero_stage_of(const Row& row, const EngineProfile& profile, Notes& notes) {
  const std::string_view strategy = row.parallel.strategy;
  if (row.parallel.zero_stage) return static_cast<int>(*row.parallel.zero_stage);
  int stage = 0;
  if (says_any(strategy, "distributed optimizer", "distributedoptimizer", "zero-1")) {
    stage = 1;
  } else if (says(strategy, "zero-2")) {
    stage = 2;
  } else if (says_any(strategy, "fsdp", "zero-3", "full_shard", "hybrid_shard")) {
    stage = 3;
  } else if (profile.zero_stages.size() == 1) {
    stage = profile.zero_stages.front();
  }
  notes.assume(fmt::format("zero_stage {}", stage));
  return stage;
}

}  // namespace

std::optional<RowEngine> engine_of(const Row& row, Notes& notes) {
  RowEngine engine;
  const std::string_view name = name_of_engine(row, engine, notes);
  engine.profile = find_engine(name);
  if (engine.profile == nullptr) {
    notes.refuse(fmt::format("no engine profile for {}",
                             row.framework.empty() ? "an unnamed framework" : row.framework));
    return std::nullopt;
  }
  engine.zero_stage = zero_stage_of(row, *engine.profile, notes);
  return engine;
}

}  // namespace shardwise
