#pragma once

#include "executor/data/token_sequences.h"
#include "executor/launch/run_options.h"
#include "planner/spec/plan.h"

namespace shardwise::exec {

/// The sequences that a run trains on: of the file that --data names, or of the catalogue's text.
/// A text is encoded by --tokenizer, or its bytes are tokens.
/// \returns everything that keeps the plan's model from being trained on it
Result<TokenSequences> read_data(const Plan& plan, const RunOptions& options);

}  // namespace shardwise::exec
