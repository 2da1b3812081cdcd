#pragma once

#include <cstdint>
#include <filesystem>

#include "executor/comm/communicator.h"
#include "executor/engine/rank_state.h"
#include "planner/spec/model_spec.h"

namespace shardwise::exec {

/// Writes a folder that transformers reads: config.json, and the weights as safetensors in files of
/// at most `most_bytes` (a larger tensor has a file of its own). The weights are those that the
/// optimizer updates, fp32; rows that an engine adds to the vocabulary are left out. Tensors stand
/// in the order of the model.
///
/// All ranks call together. Rank 0 writes; it is sent what it lacks, a MiB at a time.
/// \throws IoError when the folder cannot be written
void save_weights(const RankState& state, const Arena& arena, const ModelSpec& model,
                  Communicator& everyone, const std::filesystem::path& folder,
                  std::int64_t most_bytes);

}  // namespace shardwise::exec
