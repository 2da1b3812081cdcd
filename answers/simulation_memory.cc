#include "answers/simulation_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "planner/lowering/lower.h"
#include "planner/question/flags.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

constexpr Bytes kProgram(20'000'000);  // without any operation
// Of an operation.
constexpr Bytes kEach(400);     // program, prices and times
constexpr Bytes kEachRank(50);  // of each further rank that is simulated
constexpr Bytes kTrials(550);   // with trials
constexpr Bytes kTrace(1'250);  // with a trace

Bytes memory_of(const AskedStep& asked, const Plan& plan, std::int64_t operations) {
  Bytes each = kEach;
  if (asked.all_ranks) each += kEachRank * (plan.layout.world() / plan.layout.pp);
  if (asked.noise.trials > 0) each += kTrials;
  if (asked.traced) each += kTrace;
  return kProgram + each * operations;
}

/// Operations that a step has at most, counted by nobody: no layer's pass has as many as a hundred.
std::int64_t most_operations(const Plan& plan) {
  constexpr std::int64_t kMostOfAPass = 100;
  const Layout& layout = plan.layout;
  const std::int64_t batch = plan.job.batch_for(layout.dp(), layout.micro_batch_size);
  const std::int64_t microbatches =
      std::max<std::int64_t>(1, batch / (layout.dp() * std::int64_t{layout.micro_batch_size}));
  // One more micro-batch and layer for what a step and a stage have once.
  return 2 * kMostOfAPass * (microbatches + 1) * (std::ssize(plan.model.layers) + 1);
}

}  // namespace

Bytes simulation_memory(const AskedStep& asked, const Plan& plan) {
  return memory_of(asked, plan, count_operations(plan, options_of(asked).granularity));
}

Diagnostics over_memory_limit(const AskedStep& asked, const Plan& plan) {
  if (memory_of(asked, plan, most_operations(plan)) <= asked.memory_limit) return {};
  const Bytes needed = simulation_memory(asked, plan);
  if (needed <= asked.memory_limit) return {};
  return {wrong_flag("--memory-limit",
                     fmt::format("the simulation takes about {} of this machine, more than {}",
                                 format_bytes(needed), format_bytes(asked.memory_limit)),
                     "raise the limit or use a smaller --global-batch-size; estimate gives the "
                     "step of any batch")};
}

}  // namespace shardwise::sim
