#pragma once

#include <string>

#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Work that training on one sequence takes by definition of the model, whatever the system does:
/// forward, and twice that backward. Recompute is not in it.
///
///   6 x N x s + 3 x attention      4 x N x s where the weights are frozen (LoRA)
///
/// N counts the weights of matrix products that a token meets (the output head, but not the input
/// embedding; num_experts_per_tok of num_experts); attention is 4 x s x s x heads x head_dim per
/// layer for the two products Q K^T and P V, of which a causal mask leaves half.
/// Source: Chowdhery et al., "PaLM" (arXiv:2204.02311), appendix B; the causal half as in Dao,
/// "FlashAttention-2" (arXiv:2307.08691), section 4.
struct ModelFlops {
  Flops causal;        // masked part left out: the default of mfu
  Flops whole;         // as if nothing were masked, as PaLM and Megatron count
  double weights = 0;  // N
  double times = 6;    // the factor before N
};
ModelFlops model_flops(const ModelSpec& model, const JobSpec& job);

}  // namespace shardwise
