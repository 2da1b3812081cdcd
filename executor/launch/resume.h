#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "executor/checkpoint/folder_lock.h"
#include "executor/checkpoint/saved_checkpoint.h"
#include "executor/launch/run_options.h"
#include "executor/launch/together.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Manifest of this run's checkpoints, without their step, sequence and files.
Manifest manifest_of(const Plan& plan, const RunOptions& options, const DataIdentity& data,
                     const std::string& run);

/// The checkpoint that a run is resumed from.
struct Resumed {
  SavedCheckpoint saved;
  /// Whose latest good checkpoint it is; empty where the user named the checkpoint itself.
  std::filesystem::path latest_of;
  /// Every step that --steps asks for is trained.
  bool finished = false;
};

/// The folder of a run's checkpoints, as long as this lives: nobody else writes there. Every
/// process of a job has one, and all make the same calls.
class RunFolder {
 public:
  /// Takes the lock of --checkpoint-dir where that exists already, so that nobody changes it while
  /// the run looks for the checkpoint that it is resumed from.
  static Result<RunFolder> enter(const RunOptions& options, const Together& together);
  /// Makes the folder where there is none, and makes it the run's. \returns why it cannot be
  Diagnostics claim(const RunOptions& options, const std::optional<Resumed>& resumed,
                    const Together& together);

  /// The run, new or resumed. \pre claim() found no problem
  const std::string& run() const { return run_; }

 private:
  Diagnostics lock(const RunOptions& options, const Together& together);

  std::optional<FolderLock> lock_;
  std::string run_;
};

/// The checkpoint that --resume names, open, of the plan's model, and every checksum compared;
/// nothing when the run begins anew. Takes over its seed. The latest of a folder is the latest good
/// one of the folder's run; rank 0 says on standard error what it skips and why.
/// Latest and auto may find a run that has finished: a job that ended after its last checkpoint.
/// \returns what is wrong with it, or with flags that do not go with it
Result<std::optional<Resumed>> find_resumed(const Plan& plan, RunOptions& options,
                                            const Together& together);

/// Lists what a run would read otherwise than the one before: tokens, the length of sequences, how
/// many a step has. Nothing with --resume-on-other-data, or where the checkpoint does not say.
Diagnostics other_data(const Manifest& saved, const DataIdentity& data, const RunOptions& options);

/// Tells people which checkpoint a run resumes from, and what its optimizer does otherwise.
void introduce_resumed(const Manifest& saved, const RunOptions& options);

}  // namespace shardwise::exec
