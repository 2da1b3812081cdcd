#pragma once

#include <cstdint>
#include <filesystem>

#include "executor/comm/control_group.h"
#include "executor/engine/rank_state.h"
#include "executor/storage/stored_tensor.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise::exec {

/// Where weights go, and as what.
struct SaveRules {
  std::filesystem::path folder;
  StoredType type = StoredType::f32;        // or bf16: rounded to nearest, ties to even
  std::int64_t most_bytes = 5'000'000'000;  // of a file; a larger tensor has one of its own
};

/// Whether a file that save_weights() writes has this name.
bool is_file_of_weights(const std::string& name);

/// Writes a folder that transformers reads: config.json, and the weights as safetensors. They are
/// those that the optimizer updates; rows that an engine adds to the vocabulary are left out.
/// Tensors stand in the order of the model.
///
/// All ranks call together. Rank 0 writes; it is sent what it lacks, a MiB at a time.
/// \throws IoError when the folder cannot be written
void save_weights(const RankState& state, const Arena& arena, Device& device, const Plan& plan,
                  ControlGroup& everyone, const SaveRules& rules);

}  // namespace shardwise::exec
