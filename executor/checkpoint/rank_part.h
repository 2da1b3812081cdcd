#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/checkpoint/manifest.h"
#include "executor/engine/rank_state.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

/// Part of a checkpoint that one rank writes, copied from its memory: over all ranks every element
/// of every tensor once. Rows that an engine adds to the vocabulary are left out, and the copy that
/// a pipeline's last stage has of the token table. What several ranks of tensor parallelism
/// have is the first one's.
struct RankPart {
  std::vector<SavedSlice> slices;                       // without checksums
  std::array<std::vector<float>, kSavedStates> values;  // of the slices, one after the other
};
RankPart copy_rank_part(const RankState& state, const Arena& arena, Device& device);

/// Writes it as a file of `folder`, checksums and all. \throws IoError
SavedFile write_rank_part(const std::filesystem::path& folder, int rank, const RankPart& part);

/// Every tensor of a plan's model, whatever stage has it, and how ranks have it cut.
std::vector<SavedTensor> saved_tensors(const Plan& plan);

/// The name of a slice's state in its file: "first_moment/lm_head.weight".
std::string stored_name(std::size_t state, const std::string& tensor);

}  // namespace shardwise::exec
