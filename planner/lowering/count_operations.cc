#include <fmt/format.h>

#include <algorithm>

#include "planner/lowering/lower.h"
#include "planner/schedule/pipeline_slots.h"

namespace shardwise {
namespace {

/// Sequences of one micro-batch of all replicas.
std::int64_t sequences(const Plan& plan) {
  return plan.layout.dp() * std::int64_t{plan.layout.micro_batch_size};
}

std::int64_t microbatches(const Plan& plan) {
  const Layout& layout = plan.layout;
  const std::int64_t batch = plan.job.batch_for(layout.dp(), layout.micro_batch_size);
  return std::max<std::int64_t>(1, batch / sequences(plan));
}

/// Operations of a step of few micro-batches, and what each period of more adds.
struct Counted {
  std::int64_t few = 0;
  std::int64_t period = 1;
  std::int64_t operations = 0;
  std::int64_t each = 0;

  std::int64_t of(std::int64_t number) const { return operations + (number - few) / period * each; }
};

std::int64_t made(Plan plan, Granularity granularity, std::int64_t number) {
  plan.job.global_batch_size = number * sequences(plan);
  std::int64_t operations = 0;
  for (const StageProgram& stage : lower(plan, granularity).stages) {
    operations += static_cast<std::int64_t>(stage.operations.size());
  }
  return operations;
}

Counted counted(const Plan& plan, Granularity granularity) {
  const std::int64_t number = microbatches(plan);
  Counted all;
  all.period = microbatches_a_period(plan.layout);
  const std::int64_t least = std::min(number, microbatches_apart(plan.layout));
  all.few = number - (number - least) / all.period * all.period;
  all.operations = made(plan, granularity, all.few);
  if (all.few < number) {
    all.each = made(plan, granularity, all.few + all.period) - all.operations;
  }
  return all;
}

}  // namespace

std::int64_t count_operations(const Plan& plan, Granularity granularity) {
  return counted(plan, granularity).of(microbatches(plan));
}

Diagnostics too_many_operations(const Plan& plan, Granularity granularity) {
  // No layer's pass has as many as a hundred.
  constexpr std::int64_t kMostOfAPass = 100;
  const std::int64_t number = microbatches(plan);
  const auto layers = static_cast<std::int64_t>(plan.model.layers.size());
  if (number < kMostOperations / (2 * kMostOfAPass * std::max<std::int64_t>(layers, 1))) return {};
  const Counted all = counted(plan, granularity);
  if (all.of(number) <= kMostOperations) return {};
  const std::int64_t most =
      std::max<std::int64_t>(0, (kMostOperations - all.operations) / all.each) * all.period +
      all.few;
  return {{"command line", 0, 0, "--global-batch-size",
           fmt::format("a step of {} micro-batches has {} operations, more than {}", number,
                       all.of(number), kMostOperations),
           fmt::format("use {} or less; estimate gives the step of any batch",
                       most * sequences(plan))}};
}

}  // namespace shardwise
