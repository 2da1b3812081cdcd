#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/placement.h"

namespace shardwise {

// After which micro-batches of a step gradients are reduced. Lowering, step-time model and ledger
// ask here. docs/memory.md and docs/data_parallel_time.md have what follows from it.

/// Whether reductions leave a rank with its shard of the gradients.
constexpr bool shards_gradients(const Layout& layout) {
  return placement_of(layout.zero_stage, layout.outer_shards_optimizer).gradients !=
         Placement::replicate;
}

/// Whether the inner axis reduces the gradients of each micro-batch; else those of all, once the
/// last has made its part.
constexpr bool reduces_each(const Layout& layout) {
  return layout.reduce_every_microbatch && shards_gradients(layout);
}

/// Whether gradients leave after each of so many micro-batches: a single one is the last one too.
constexpr bool reduces_each_of(const Layout& layout, std::int64_t num_microbatches) {
  return shards_gradients(layout) && (layout.reduce_every_microbatch || num_microbatches == 1);
}

/// Whether the inner axis reduces after a micro-batch, the `last` one of its chunk or another.
constexpr bool reduces_after(const Layout& layout, bool last) {
  return last || reduces_each(layout);
}
/// Whether the outer axis reduces then: it reduces what the inner one left, the sum of the step.
constexpr bool reduces_outer_after(bool last) { return last; }

/// Reductions of a bucket or unit over a step.
struct Reductions {
  std::int64_t inner = 0;
  std::int64_t outer = 0;
};
constexpr Reductions reductions_of(const Layout& layout, std::int64_t num_microbatches) {
  Reductions all;
  for (const bool last : {false, true}) {
    const std::int64_t microbatches = last ? 1 : num_microbatches - 1;
    if (reduces_after(layout, last)) all.inner += microbatches;
    if (reduces_outer_after(last)) all.outer += microbatches;
  }
  return all;
}

}  // namespace shardwise
