#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

// Checkpoints at rest: whether a run could be resumed from each, asked without a plan or a run.

/// State of what is left of a checkpoint.
enum class CheckpointState : std::uint8_t {
  good,        // a run of its model may be resumed from it
  damaged,     // none may
  skipped,     // it has a checkpoint's name, and --resume does not look at it
  unfinished,  // being written or removed, or was when a run ended; no run reads it
};

struct VerifiedCheckpoint {
  std::string name;  // of its folder
  CheckpointState state = CheckpointState::good;
  Diagnostics problems;            // of one that is damaged or skipped, with file and tensor
  std::vector<std::string> notes;  // of a good one: what a reader of the folder may not expect
  // Run of a good one.
  std::string run;
  std::int64_t step = 0;
  std::int64_t tensors = 0;
  std::int64_t files = 0;
  std::int64_t bytes = 0;  // of files, without the manifest
};

/// Findings in a folder of checkpoints, each by its own.
struct VerifiedFolder {
  Diagnostics problems;  // run.json that cannot be read
  std::vector<VerifiedCheckpoint> checkpoints;

  std::int64_t count(CheckpointState state) const;
  /// Nothing is damaged or skipped.
  bool all_good() const;
};

/// Reads every byte of every checkpoint in `folder`, in the order of their names, or of the one
/// whose folder it is, and compares it as a run does that is resumed from it (SavedCheckpoint).
/// Nothing is written or locked: a run may go on in the folder, and what it removes meanwhile is
/// left out.
/// \param each  told of every checkpoint once it is read
VerifiedFolder verify_checkpoints(const std::filesystem::path& folder,
                                  const std::function<void(const VerifiedCheckpoint&)>& each);

}  // namespace shardwise::exec
