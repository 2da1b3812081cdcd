#pragma once

#include <cstdint>

#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise::test {

/// A Llama: grouped queries, gated feed-forward, RMSNorm, rotary embedding, untied head.
ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                std::int64_t heads, std::int64_t kv_heads, std::int64_t vocab);

/// Llama-3.1-8B: 8,030,261,248 parameters (meta-llama/Llama-3.1-8B, config.json).
ModelSpec llama_3_1_8b();
inline constexpr std::int64_t kLlama8BParameters = 8'030'261'248;
inline constexpr std::int64_t kLlama8BHidden = 4096;

/// The transformer of Korthikanti et al. (arXiv:2205.05198): GELU of four times the hidden size,
/// LayerNorm, biases, learned positions, tied head.
ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab);

/// A mixture of experts on Llama's attention; `shared` is the width of the shared experts, 0 none.
ModelSpec mixture(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                  std::int64_t experts, std::int64_t experts_per_token, std::int64_t width,
                  std::int64_t shared);

/// Tokens of a sequence of a job that says nothing else.
inline constexpr std::int64_t kDefaultTokens = 4096;

/// A job whose loss is the engine's own.
JobSpec open_job();

}  // namespace shardwise::test
