#pragma once

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Number formats of the job that cannot be used: a precision without a peak in the file of the
/// cluster's GPU (the hint names those it has), and weights gathered in fp8 when the job is not
/// fp8.
Diagnostics check_precision(const ClusterSpec& cluster, const JobSpec& job);

/// Operations that the job recomputes and the model has not.
Diagnostics check_operations(const ModelSpec& model, const JobSpec& job);

/// Tokens of a sequence that a learned table of the model has positions for; 0 where any number has
/// one.
std::int64_t learned_positions(const ModelSpec& model);

/// Longer sequences of the job than that. It is asked of what a user types, not of plans, whose
/// model may be one of the same sizes with another table.
Diagnostics check_positions(const ModelSpec& model, const JobSpec& job,
                            const EngineProfile& engine);

/// Every reason why `layout` cannot run this job: degrees that do not divide what they cut, ranks
/// that do not multiply to GPUs, what the engine cannot do. One line each, with the flag as path,
/// the offending value, the line of the engine's own code that refuses it, if one does, and what
/// would be right as hint. Empty when the layout is legal.
Diagnostics check_layout(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout);

/// Whether the engine can split experts over the ranks of tp: not DeepSpeed's of several ranks
/// under ZeRO stage 3.
bool splits_experts_by_tp(const EngineProfile& engine, const Layout& layout);

/// All of these of a plan.
Diagnostics check_plan(const Plan& plan);

/// Same as check_layout(...).empty(), without writing words: for the search.
bool is_legal(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
              const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
