#pragma once

#include <cstdint>
#include <span>

#include "planner/cost/layer/layer_memory.h"

namespace shardwise {

/// Elements of the token table, on this rank; 0 where no kind of layer is an embedding.
std::int64_t table_elements(std::span<const LayerMemory> by_kind);
/// Token table as a tensor, where it is trained; one without rows where it is not.
TensorGroup token_table(std::span<const LayerMemory> by_kind);

/// Whether a trained tensor of a layer is the token table: of an embedding, all over the
/// vocabulary.
bool is_token_table(const LayerMemory& layer, std::int64_t elements);

/// Whether a layer is a head without a table of its own.
bool has_tied_table(const LayerMemory& layer);

}  // namespace shardwise
