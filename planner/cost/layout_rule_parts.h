#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "planner/cost/layout_rules.h"

namespace shardwise {

// The parts of layout_rules(), by subject, and what they share.
std::span<const LayoutRule> degree_rules();
std::span<const LayoutRule> pipeline_rules();
std::span<const LayoutRule> state_rules();

inline constexpr std::uint32_t kReadsRanks = kReadsTp | kReadsCp | kReadsPp | kReadsDp;

/// "use 1, 2, 4 or 8": the divisors of `n` up to `most`, the largest when they are many.
std::string use_divisors(std::int64_t n, std::int64_t most);

/// Micro-batches a data-parallel rank runs a step. \pre the batch divides
inline std::int64_t microbatches(const LayoutQuestion& q, const Layout& l) {
  const std::int64_t each = l.dp() * l.micro_batch_size;
  return std::max<std::int64_t>(1, q.job->batch_for(l.dp(), l.micro_batch_size) / each);
}

}  // namespace shardwise
