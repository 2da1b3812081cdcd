#pragma once

#include <optional>

#include "executor/data/data_identity.h"
#include "executor/data/token_sequences.h"
#include "executor/launch/run_options.h"
#include "executor/weights/hf_weights.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

/// Input that a run reads besides its plan.
struct RunInput {
  TokenSequences data;
  DataIdentity identity;
  std::optional<HfWeights> weights;  // of --init-from
};

/// Opens the file that --data names, or the catalogue's text, and what --init-from names. A text is
/// encoded by --tokenizer, or its bytes are tokens. Makes the folder of --save-weights.
/// \param resumed  from a checkpoint, which has the weights
/// \returns everything that keeps the plan's model from being trained on it
Result<RunInput> read_input(const Plan& plan, const RunOptions& options, bool resumed);

}  // namespace shardwise::exec
