#include "simulator/clock/steady_step.h"

#include <algorithm>

#include "planner/schedule/pipeline_slots.h"
#include "planner/spec/plan/schedule_facts.h"
#include "simulator/clock/prepare.h"
#include "simulator/clock/repeated_part.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/clock/steady_period.h"

namespace shardwise::sim {
namespace {

/// A step of so many micro-batches, not run yet.
Simulation of_microbatches(const Plan& plan, const SimulationOptions& options, std::int64_t number,
                           Wanted wanted) {
  Simulation made;
  prepare(plan, options, wanted, made, number);
  return made;
}

/// The length of a step of `few` micro-batches and of a period; nothing where none is proved.
struct FewMicrobatches {
  double length = 0;
  double period = 0;
};
std::optional<FewMicrobatches> run_few(const Plan& plan, const SimulationOptions& options,
                                       std::int64_t few, std::int64_t period,
                                       const std::stop_token& stop) {
  const Simulation made = of_microbatches(plan, options, few, Wanted::times);
  if (stop.stop_requested()) return std::nullopt;
  const Simulation more = of_microbatches(plan, options, few + period, Wanted::program);
  const std::optional<std::vector<RepeatedPart>> parts =
      repeated_parts(made.program, made.prices, more.program, more.prices);
  if (!parts) return std::nullopt;
  InsideEnds inside;
  const Timeline timeline =
      options.contention ? run_shared(made.work, stop, &inside) : run_alone(made.work, stop);
  if (timeline.stopped || !timeline.stalled.empty()) return std::nullopt;
  const std::optional<double> seconds = steady_period(made.work, timeline, inside, *parts);
  if (!seconds) return std::nullopt;
  return FewMicrobatches{timeline.length(), *seconds};
}

/// So many have a warm-up, two periods on all stages at once and a little more, and a cool-down.
std::int64_t fewest(const Layout& layout) {
  return std::max(facts_of(layout).fewest_microbatches(layout.pp),
                  layout.pp + 4 * microbatches_a_period(layout));
}

}  // namespace

std::optional<SteadyStep> steady_step(const Plan& plan, const SimulationOptions& options,
                                      const std::stop_token& stop) {
  const std::int64_t number = plan.job.microbatches(plan.layout.dp(), plan.layout.micro_batch_size);
  const std::int64_t period = microbatches_a_period(plan.layout);
  if (facts_of(plan.layout).forward_first) return std::nullopt;  // repeats in two places
  // Of few, two programs are lowered and one is run; what proves nothing is to cost little.
  std::int64_t least = fewest(plan.layout);
  for (; 4 * least <= number && !stop.stop_requested(); least *= 2) {
    const std::int64_t few = number - (number - least) / period * period;
    const std::optional<FewMicrobatches> run = run_few(plan, options, few, period, stop);
    if (!run) continue;
    const auto left_out = static_cast<double>((number - few) / period);
    return SteadyStep{run->length + left_out * run->period, few};
  }
  return std::nullopt;
}

}  // namespace shardwise::sim
