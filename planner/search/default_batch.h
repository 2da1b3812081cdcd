#pragma once

#include <cstdint>

#include "planner/spec/job_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/report.h"

namespace shardwise {

/// Sequences of a step when nobody states a batch: the power of two that makes about 4 Mi tokens,
/// at least 1. plan, estimate, simulate and size ask the same question.
/// Source: Touvron et al., "Llama 2" (arXiv:2307.09288), section 2.2: 4 M tokens.
std::int64_t default_batch(const JobSpec& job);

/// The same for a layout: the next larger batch where data parallelism or the schedule does not
/// divide it.
std::int64_t default_batch(const JobSpec& job, const Layout& layout);

/// What is printed where a default was taken: id "global_batch_size".
Assumption batch_assumption(const JobSpec& job);

}  // namespace shardwise
