#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/question/subject.h"
#include "planner/search/advice/sizing.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Question of `size`, as a user gave it.
struct AskedSize {
  AskedJob job;                       // without a cluster
  std::vector<std::string> clusters;  // of the catalogue, or files; none: all of the catalogue
  double tokens = 0;                  // of the whole training
  double days = 0;                    // until it must end
  double restart_minutes = 10;        // from a failure to the next step
  double mtbf_hours = 50677;          // of a GPU, where its cluster states none
  std::int64_t most_gpus = 16384;     // of a cluster
};

/// The question with everything loaded.
struct SizeQuestion {
  Subject subject;  // beside one of the clusters; its batch is set
  std::vector<ClusterSpec> clusters;
  SizingGoal goal;
  std::vector<Assumption> assumptions;  // what was taken for want of a flag
};
/// \returns the question, or all its problems at once
Result<SizeQuestion> read_question(const AskedSize& asked);

}  // namespace shardwise
