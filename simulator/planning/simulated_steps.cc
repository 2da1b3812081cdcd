#include "simulator/planning/simulated_steps.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "simulator/simulate.h"

namespace shardwise::sim {

std::int64_t layer_passes_of_step(const Plan& plan) {
  const std::int64_t once = plan.layout.dp() * plan.layout.micro_batch_size;
  const std::int64_t microbatches =
      plan.job.batch_for(plan.layout.dp(), plan.layout.micro_batch_size) / once;
  return microbatches * static_cast<std::int64_t>(plan.model.layers.size());
}

std::vector<Seconds> simulated_steps(std::span<const Plan> plans, int threads) {
  std::vector<Seconds> steps(plans.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < plans.size(); i = next++) steps[i] = simulated_step(plans[i]);
  };
  const std::size_t cores = threads > 0 ? static_cast<std::size_t>(threads)
                                        : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < std::min(cores, plans.size()); ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return steps;
}

}  // namespace shardwise::sim
