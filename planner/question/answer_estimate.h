#pragma once

#include <string>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Question of `estimate`, as a user gave it.
struct AskedEstimate {
  AskedJob job;
  AskedLayout layout;
  std::string anchor;  // report of a run by whose error the estimate is corrected; empty for none
  Detail detail = Detail::numbers;
};

/// Bytes and times of one layout, with all that follows from what was given.
struct EstimateAnswer {
  Subject subject;
  Layout layout;
  StepReport report;  // with the cheapest fix where it does not fit, and all assumptions
  /// Assumptions of a first screen: what was filled in, busy links, flags without an effect.
  std::vector<Assumption> said;
};

/// \returns the estimate, or everything wrong with the question or the anchor
Result<EstimateAnswer> answer_estimate(const AskedEstimate& asked);

}  // namespace shardwise
