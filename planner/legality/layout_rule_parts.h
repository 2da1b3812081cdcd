#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "planner/cost/software/usual_kernels.h"
#include "planner/legality/layout_rules.h"

namespace shardwise {

// The parts of layout_rules(), by subject, and what they share.
std::span<const LayoutRule> degree_rules();
std::span<const LayoutRule> pipeline_rules();
std::span<const LayoutRule> state_rules();
std::span<const LayoutRule> job_rules();

inline constexpr std::uint32_t kReadsRanks = kReadsTp | kReadsCp | kReadsPp | kReadsDp;

/// "use 1, 2, 4 or 8": the divisors of `n` up to `most`, the largest when they are many.
std::string use_divisors(std::int64_t n, std::int64_t most);

/// "megatron_ddp cannot …", and no way out.
RuleBreach engine_cannot(const LayoutQuestion& q, const char* flag, const char* what);

/// Micro-batches a data-parallel rank runs a step. \pre the batch divides
inline std::int64_t microbatches(const LayoutQuestion& q, const Layout& l) {
  return q.job->microbatches(l.dp(), l.micro_batch_size);
}

/// Megatron-LM runs the job, by its own arguments. Under our kernels an engine of its profile is
/// our executor's.
inline bool is_megatrons(const LayoutQuestion& q) {
  return q.engine->kernels == Kernels::transformer_engine &&
         kernels_of(*q.job, *q.engine) != Kernels::planned;
}

/// Whether what is asked of the optimizer's states is refused at ZeRO stage 0, even where no other
/// rank could share them.
bool needs_zero_stage(const LayoutQuestion& q, const Layout& l);

}  // namespace shardwise
