#include "answers/simulated_steps.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <functional>
#include <numeric>

#include "planner/search/search_threads.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

namespace {

std::int64_t microbatches_of(const Plan& plan) {
  const std::int64_t once = plan.layout.dp() * plan.layout.micro_batch_size;
  return plan.job.batch_for(plan.layout.dp(), plan.layout.micro_batch_size) / once;
}

/// Between stages, of all of them.
std::int64_t messages_of_step(const Plan& plan) {
  return microbatches_of(plan) * 2 * (std::int64_t{plan.layout.pp} * plan.layout.vpp - 1);
}

}  // namespace

std::int64_t layer_passes_of_step(const Plan& plan) {
  return microbatches_of(plan) * static_cast<std::int64_t>(plan.model.layers.size());
}

std::size_t count_to_simulate(std::span<const Plan> plans) {
  std::int64_t left = static_cast<std::int64_t>(kSimulated) * kMostLayerPasses;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::int64_t passes = layer_passes_of_step(plans[i]);
    if (i < kSimulated && passes > kMostLayerPasses) return 0;
    left -= passes;
    if (left < 0) return i;
  }
  return plans.size();
}

std::vector<Seconds> simulated_steps(std::span<const Plan> plans, int threads) {
  // The longest first, so that no thread begins one when the others are done.
  std::vector<std::size_t> order(plans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t plan) {
    return layer_passes_of_step(plans[plan]) + messages_of_step(plans[plan]);
  });
  std::vector<Seconds> steps(plans.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&](int) {
    for (std::size_t i = next++; i < order.size(); i = next++) {
      steps[order[i]] = simulated_step(plans[order[i]]);
    }
  };
  const auto most = static_cast<int>(std::min(plans.size(), std::size_t{INT_MAX}));
  in_parallel(std::min(thread_count(threads), most), work);
  return steps;
}

}  // namespace shardwise::sim
