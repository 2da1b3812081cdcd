#pragma once

#include "planner/spec/cluster_spec.h"
#include "planner/spec/diagnostic.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/plan.h"

namespace shardwise {

/// Number formats of the job that cannot be used: a precision without a peak in the file of the
/// cluster's GPU (the hint names those it has), and weights gathered in fp8 when the job is not
/// fp8.
Diagnostics check_precision(const ClusterSpec& cluster, const JobSpec& job);

/// Operations that the job recomputes and the model has not.
Diagnostics check_operations(const ModelSpec& model, const JobSpec& job);

/// Every reason why `layout` cannot run this job: degrees that do not divide what they cut, ranks
/// that do not multiply to GPUs, what the engine cannot do. One line each, with the flag as path,
/// the offending value, and what would be right as hint. Empty when the layout is legal.
Diagnostics check_layout(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout);

/// All of these of a plan.
Diagnostics check_plan(const Plan& plan);

/// Same as check_layout(...).empty(), without writing words: for the search.
bool is_legal(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
              const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
