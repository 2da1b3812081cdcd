#pragma once

#include <cstdint>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"

namespace shardwise {

/// Whether ranks divide all tensors of a stage joined in one, with padding at its end alone:
/// DeepSpeed's ZeRO-1 and 2.
bool divides_joined_tensors(const EngineProfile& engine, const Layout& layout);

/// Elements of a rank then: parts are a multiple of 2.
/// Source: deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/stage_1_and_2.py,
/// nccl_start_alignment_factor.
std::int64_t joined_part(std::int64_t elements, std::int64_t ranks);

/// Tensors of a stage that a rank has a part of, where ranks divide all of them joined.
struct RankPart {
  std::int64_t elements = 0;  // of the part, with padding
  std::int64_t whole = 0;     // of the tensors, whole
  std::int64_t largest = 0;   // of the part's largest piece of one tensor
  bool joins = false;         // it has more than one piece, counting padding
};
/// \param last  of the last rank; if not, of the first. Routed experts are divided on their own.
RankPart rank_part(const StageParts& parts, const ShardRanks& ranks, bool last);

/// Bytes steps of DeepSpeed's ZeRO-1 and 2 hold at their fullest, of the first rank and the last:
/// the norm casts each piece to fp64, then the part is joined from whole gradients and cast, which
/// frees them, and the optimizer runs.
/// \param moments  that the first step makes
/// Source: deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/stage_1_and_2.py:2192
/// (grads_in_partition), 2684 (get_grad_norm_direct), 3117 (step).
struct OptimizerSteps {
  StepTensors first;
  StepTensors steady;
};
OptimizerSteps joined_steps(const StageParts& parts, const ShardRanks& ranks,
                            const MemoryRules& rules, const Amount& moments);

}  // namespace shardwise
