#pragma once

#include <cstdint>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Sequences of a step when nobody states a batch, at least 1. plan, estimate, simulate and size
/// ask the same question. On accelerators the power of two that makes about 4 Mi tokens. On CPUs
/// about 16 Ki tokens, the next multiple of the ranks: a tiny model's step then takes seconds.
/// Source: Touvron et al., "Llama 2" (arXiv:2307.09288), section 2.2: 4 M tokens.
std::int64_t default_batch(const ClusterSpec& cluster, const JobSpec& job);

/// Batch of a layout: the next larger one where data parallelism or the schedule does not divide
/// it.
std::int64_t default_batch(const ClusterSpec& cluster, const JobSpec& job, const Layout& layout);

/// Assumption that is printed where a default was taken: id "global_batch_size".
Assumption batch_assumption(const ClusterSpec& cluster, const JobSpec& job);

}  // namespace shardwise
