#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardwise::exec {

// A folder of checkpoints: `step-00000020` is complete, as it got its name when all of it was on
// the disk; `step-00000040.partial` is being written, or was when the run ended.

std::filesystem::path complete_name(std::int64_t step);
std::filesystem::path partial_name(std::int64_t step);

/// Steps of the complete checkpoints, ascending; none when there is no such folder.
std::vector<std::int64_t> complete_steps(const std::filesystem::path& folder);

/// Makes an empty folder for a checkpoint to be written, without those of runs that ended before
/// theirs was complete. \returns its path \throws IoError
std::filesystem::path begin_checkpoint(const std::filesystem::path& folder, std::int64_t step);
/// Gives it the name of a complete one, whose place it takes, and has the disk keep it.
/// \throws IoError
void complete_checkpoint(const std::filesystem::path& folder, std::int64_t step);
/// Removes complete checkpoints before `step` but for the last ones, so that `keep` are left with
/// it; 0 keeps all. One that cannot be removed stays.
void remove_old_checkpoints(const std::filesystem::path& folder, std::int64_t step,
                            std::int64_t keep);

}  // namespace shardwise::exec
