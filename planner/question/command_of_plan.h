#pragma once

#include <string>

#include "planner/question/answer_estimate.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Question to `estimate` that answers with a plan's question and layout, every field that would
/// otherwise be another among its texts. \returns it, or why no flags say it: a model or a cluster
/// that is none of the catalogue's, or has another price there
Result<AskedEstimate> asked_of(const Plan& plan);

/// "shardwise estimate --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --tp 4 …", as a shell
/// takes it.
std::string command_of(const AskedEstimate& asked);
/// Command with `simulate`, which takes the best layout where no flag says one.
std::string simulate_command_of(AskedEstimate asked);

}  // namespace shardwise
