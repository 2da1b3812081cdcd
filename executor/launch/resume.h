#pragma once

#include <optional>

#include "executor/checkpoint/saved_checkpoint.h"
#include "executor/launch/run_options.h"
#include "planner/spec/diagnostic.h"
#include "planner/spec/plan.h"

namespace shardwise::exec {

/// What the manifest of this run's checkpoints says besides step, sequence and files.
Manifest manifest_of(const Plan& plan, const RunOptions& options, const DataIdentity& data);

/// The checkpoint that --resume names, open and of the plan's model; nothing when the run begins
/// anew. Checksums of tensors are not compared yet. Takes over its seed.
/// \returns what is wrong with it, or with flags that do not go with it
Result<std::optional<SavedCheckpoint>> find_resumed(const Plan& plan, RunOptions& options);

/// What a run would read otherwise than the one before: tokens, the length of sequences, how many a
/// step has. Nothing with --resume-on-other-data, or where the checkpoint does not say.
Diagnostics other_data(const Manifest& saved, const DataIdentity& data, const RunOptions& options);

/// Makes the folder for checkpoints. \returns why there can be none
Diagnostics prepare_checkpoints(const RunOptions& options);

/// For people: which checkpoint a run goes on from, and what its optimizer does otherwise.
void introduce_resumed(const Manifest& saved, const RunOptions& options);

}  // namespace shardwise::exec
