#pragma once

#include <optional>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

/// The training system a row ran on, and what follows from that for facts the row leaves out.
struct RowEngine {
  const EngineProfile* profile = nullptr;
  bool megatron = false;            // Megatron-Core or -LM, and systems built on them
  bool megatron_deepspeed = false;  // Megatron-LM's 2021 code under DeepSpeed
  bool torchtitan = false;          // its wording of recompute
  /// NeMo and Megatron-Bridge publish the numbers of their performance recipes, which share
  /// settings that Megatron itself leaves off.
  bool performance_recipe = false;
  int zero_stage = 0;
};

/// Chosen by the words of `framework` and `parallel.strategy`. Refuses systems without a profile.
std::optional<RowEngine> engine_of(const Row& row, Notes& notes);

}  // namespace shardwise
