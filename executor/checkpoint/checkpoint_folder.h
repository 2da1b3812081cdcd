#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise::exec {

// A folder of checkpoints: `step-00000020` is complete, as it got its name when all of it was on
// the disk; `step-00000040.partial` is being written, or was when the run ended.

std::filesystem::path complete_name(std::int64_t step);
std::filesystem::path partial_name(std::int64_t step);
/// The step of "step-00000020" and of "step-20"; nothing for other names.
std::optional<std::int64_t> step_in_name(std::string_view name);
/// Whether it is the name of one that is written or removed.
bool is_partial(std::string_view name);
/// Whether it is the name that a checkpoint of another run got when this folder's run came to its
/// step: "step-00000020.run-1a2b3c4d".
bool is_set_aside(std::string_view name);

/// Steps of the complete checkpoints, ascending; none when there is no such folder. A name that
/// another step count would have been given, or that is a link or a file, is none.
std::vector<std::int64_t> complete_steps(const std::filesystem::path& folder);

/// Makes an empty folder for a checkpoint to be written, without those of runs that ended before
/// theirs was complete. \returns its path \throws IoError
std::filesystem::path begin_checkpoint(const std::filesystem::path& folder, std::int64_t step);
/// Gives it the name of a complete one and has the disk keep it. It takes the place of what has the
/// name; a checkpoint of another run than `run` is renamed instead. \throws IoError
void complete_checkpoint(const std::filesystem::path& folder, std::int64_t step,
                         std::string_view run);
/// Removes complete checkpoints of `run` before `step` but for the last ones, so that `keep` are
/// left with it; 0 keeps all. One that cannot be removed stays.
void remove_old_checkpoints(const std::filesystem::path& folder, std::int64_t step,
                            std::int64_t keep, std::string_view run);
/// Removes complete checkpoints, the last one first: what is half removed has no longer the name of
/// a complete one. \throws IoError
void remove_checkpoints(const std::filesystem::path& folder, std::vector<std::int64_t> steps);

}  // namespace shardwise::exec
