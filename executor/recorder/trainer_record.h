#pragma once

#include <vector>

#include "executor/engine/trainer.h"
#include "executor/recorder/rank_record.h"
#include "planner/spec/plan/layout.h"

namespace shardwise::exec {

/// Record of a rank's step.
StepRecord record_of(const Trainer& trainer, const StepSpans& step);

/// Records of a rank of each stage and its programs, without moments.
std::vector<RankRecord> records_of_stages(const Trainer& trainer, const Layout& layout,
                                          const StepSpans& first, const StepSpans& median);

}  // namespace shardwise::exec
