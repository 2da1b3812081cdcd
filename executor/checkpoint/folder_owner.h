#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

// Whose checkpoints a folder has. Its run.json, `shardwise.run/1`, names the run that writes there.

inline constexpr const char* kOwnerName = "run.json";

/// A complete checkpoint by its name, and its run by the beginning of its manifest.
struct NamedCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::optional<std::string> run;  // nothing where the manifest does not say
};

/// A name that looks like a checkpoint's and is passed over.
struct PassedOver {
  std::int64_t step = 0;  // of the name
  std::filesystem::path path;
  std::string why;
};

struct FolderContents {
  std::vector<NamedCheckpoint> checkpoints;  // by step, ascending
  std::vector<PassedOver> others;
  // Folders with names that no run is resumed from by --resume latest, by name.
  std::vector<std::filesystem::path> set_aside;  // of other runs, renamed
  std::vector<std::filesystem::path> partial;    // written or removed, now or by a run that ended
  /// The run of run.json; else the one run that all checkpoints are of; else nothing.
  std::optional<std::string> owner;
  bool recorded = false;  // owner is that of run.json
  Diagnostics problems;   // of a run.json that is there and says no run

  /// Runs of the checkpoints and their steps, for messages: "run 1a2b3c4d (steps 10, 20)".
  std::string text() const;
};
FolderContents contents_of(const std::filesystem::path& folder);

/// Claim of what a run is to do in its folder.
struct Claim {
  std::string run;
  std::int64_t step = 0;  // of the checkpoint that it is resumed from; 0: the run is new
  bool latest = false;    // later checkpoints of its own were looked at and are no good
  bool replaces = false;  // removes what it would be refused for
};

/// Makes the folder the run's: its name is in run.json before the first of its checkpoints.
/// Refused, unless it replaces them: checkpoints of another run, whose folder it is; and later
/// checkpoints of the run's own, as the next start would go on from these. What a run replaces is
/// removed. \pre a FolderLock \throws IoError
Diagnostics claim_folder(const std::filesystem::path& folder, const Claim& claim);

}  // namespace shardwise::exec
