#pragma once

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"

namespace shardwise {

/// After the last backward pass, on the fullest stage.
struct OptimizerTime {
  Seconds update;    // norm, clipping, update, clearing the buffer; on the host when offloaded
  Seconds finalize;  // small reductions: norms over tp, tied embedding, tokens, gradient norm
  Seconds transfer;  // gradients to the host and weights back, not hidden
};
OptimizerTime optimizer_time(const StageTimes& stages, const LeafContext& context);

/// Bytes that the update reads and writes of an element. A main weight whose upper half is the bf16
/// weight: both halves are read and written, where else the weight is written beside fp32.
double optimizer_bytes(const TimeRules& rules, const Layout& layout);

/// A count of tokens that ranks sum, and how often the update of an expert's bias reads or writes
/// an element: its tokens, the bias before and after.
/// Source: Megatron-LM:megatron/core/transformer/moe/moe_utils.py, get_updated_expert_bias.
inline constexpr double kCountBytes = 4;
inline constexpr double kExpertBiasPasses = 3;

}  // namespace shardwise
