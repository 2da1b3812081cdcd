#pragma once

#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Tokens that the busiest expert-parallel rank gets over the mean, >= 1.
///
/// job.expert_imbalance, times what job.expert_skew adds: the i-th most popular of E experts draws
/// a share p_i proportional to i^-skew, at most 1/k as a token goes to k different experts; the
/// busiest rank holds the most popular expert and E/ep - 1 of average popularity among the rest:
///
///   ep (p_1 + (E/ep - 1) (1 - p_1) / (E - 1))
///
/// Zero skew is a perfect balance, as sought by auxiliary losses. With all experts on a rank there
/// is nothing to balance.
double busiest_expert_rank(const ModelSpec& model, const JobSpec& job, const Layout& layout);

}  // namespace shardwise
