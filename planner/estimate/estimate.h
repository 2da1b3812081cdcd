#pragma once

#include <string>
#include <vector>

#include "planner/cost/layer/layer_time.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// The answer of a search for one layout.
struct Evaluation : MemoryPeaks {
  Seconds step_time;
};

/// Memory and time of one layout, from nothing: the reference that the search's memoised path must
/// equal. \pre check_layout has no diagnostics
Evaluation evaluate(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout);

/// Time that a step waits for its batch, of estimate(). Faster where that clearly takes less than
/// what a stage computes. \pre check_layout has no diagnostics
Seconds input_exposed(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                      const EngineProfile& engine, const Layout& layout);

enum class Detail : std::uint8_t { numbers, explained };

/// Estimates every number that a report has, and with `explained` a formula for each.
/// \pre check_layout has no diagnostics
StepReport estimate(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout,
                    Detail detail = Detail::numbers);

}  // namespace shardwise
