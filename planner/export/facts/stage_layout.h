#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/plan/plan.h"

namespace shardwise {

/// Fields of a plan that a layout of pipeline stages states.
struct StageLayout {
  std::int64_t vpp = 1;
  std::int64_t first_stage_layers = 0;  // 0: as many as the others
  std::int64_t last_stage_layers = 0;
  std::string problem;  // no plan has such stages, and why; empty: they are read
};

/// Reads Megatron-LM's --pipeline-model-parallel-layout. "Et*4|t*4L" has an embedding (E), layers
/// (t), a loss (L) and multi-token prediction (m). "|" ends a chunk. "(tt|)*2" and "t*4" are
/// repeated parts. Chunk i stands on stage i modulo pp. A plan has the embedding in the first
/// chunk, loss and m in the last one, and the chunks of chunk_sizes().
///
/// \param pp      stages, at least 1
/// \param layers  of the model; 0: not known
/// Source: megatron/core/transformer/pipeline_parallel_layer_layout.py, parse_str_to_list and
/// validate_layer_layout.
StageLayout read_stage_layout(std::string_view text, std::int64_t pp, std::int64_t layers);

/// Writes that text for a plan whose chunks Megatron-LM makes by no other flags; "" where it does,
/// or where a schedule does not put chunk i on stage i modulo pp. Without a layout Megatron-LM asks
/// for equal chunks, but on a first and a last stage whose layers are stated.
/// Source: megatron/training/arguments.py:998, megatron/core/transformer/transformer_block.py:178.
std::string write_stage_layout(const Plan& plan);

}  // namespace shardwise
