#pragma once

#include <string>

#include "planner/question/answer_estimate.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// What `fits` is asked: a job on GPUs of one kind, whose cluster nobody names.
struct AskedFits {
  AskedJob job;  // without a cluster
  AskedLayout layout;
  std::string gpu;  // of the catalogue, its first part ("h100")
};

struct FitsAnswer {
  EstimateAnswer estimate;
  /// What makes it fit: the cheapest single change of the layout, else two or three, the one that
  /// saves most memory first, else the fewest GPUs of those that are tried (twice as many, to 256
  /// times); empty where it fits or nothing does.
  std::string change;
};

/// The estimate of the job on the catalogue's usual cluster of that GPU. Where no engine is named,
/// FSDP2 with everything sharded, as people ask about it first.
/// \returns the answer, or everything wrong with the question
Result<FitsAnswer> answer_fits(const AskedFits& asked);

}  // namespace shardwise
