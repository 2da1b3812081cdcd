#pragma once

#include <string>

#include "planner/question/answer_estimate.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Question of `fits`: a job on GPUs of one kind, whose cluster nobody names.
struct AskedFits {
  AskedJob job;  // without a cluster
  AskedLayout layout;
  std::string gpu;  // of the catalogue, its first part ("h100")
};

/// The estimate of the job on the catalogue's usual cluster of that GPU. Where no engine is named,
/// FSDP2 with everything sharded, as people ask about it first.
/// \returns the answer, or everything wrong with the question
Result<EstimateAnswer> answer_fits(const AskedFits& asked);

}  // namespace shardwise
