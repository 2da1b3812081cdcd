#include "planner/cost/stage_totals.h"

#include <algorithm>

#include "planner/cost/arena_buffers.h"
#include "planner/cost/stage_moments.h"
#include "planner/cost/stage_residents.h"

namespace shardwise {
namespace {

/// Bands of doubt, as shares of what they are about. Source: docs/memory.md, upper bound.
constexpr double kCommunicatorDoubt = 1.0;  // trees and transports besides the ring
constexpr double kRuntimeDoubt = 0.5;
constexpr double kWorkingDoubt = 0.25;    // temporaries of kernels that were not traced
constexpr double kImbalanceDoubt = 0.25;  // tokens of the busiest expert rank above the stated mean

}  // namespace

StateTotals state_totals(const StageStates& s) {
  StateTotals totals;
  totals.resting = s.weights.bytes() + s.narrow_weights.bytes() + s.frozen_weights.bytes() +
                   s.main_weights.bytes() + s.gradients.bytes() + s.moments.bytes() +
                   s.narrow_casts.bytes() + s.narrow_scales.bytes();
  totals.late_gradients = s.late_gradients.bytes();
  totals.step = totals.late_gradients + s.cast_gradients.bytes() + s.step_scratch.bytes() +
                s.flat_gradients.bytes() + s.received_gradients.bytes();
  return totals;
}

PassTotals pass_totals(const StageParts& parts, const StageContext& context,
                       const StageStates& states) {
  const PassBytes fullest = fullest_moment(parts, context, states).bytes;
  return {fullest.total() - fullest.gradients, fullest.gradients, fullest.working};
}

bool pass_follows_mesh(const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const EngineProfile& engine = *rules.engine;
  const bool casts_shards = context.layout->zero_stage >= 3 && rules.casts_weights &&
                            engine.main_weights == MainWeights::parameter;
  const bool gradients_grow =
      context.num_microbatches == 1 && engine.gradient_buffer == GradientBuffer::copy_in;
  const bool padded = rules.shard_multiple > 1 && context.layout->zero_stage >= 1;
  const bool planned = padded || (plans_buffers(engine) && context.layout->zero_stage >= 2);
  // Gradients that lie beside others, under our kernels, do so where they are not reduced at once.
  const bool waits = context.layout->zero_stage >= 2 && !context.layout->reduce_every_microbatch;
  return waits || context.layout->reshards_to_groups() || casts_shards || gradients_grow ||
         planned || rules.fp32_accumulation;
}

std::size_t pass_number(const Layout& layout) {
  const bool by_unit = layout.zero_stage >= 2;
  const bool widths = by_unit || layout.pp == 1;
  return (by_unit ? static_cast<std::size_t>(layout.zero_stage) << 4U : 0) |
         static_cast<std::size_t>(widths && layout.fp32_gradients) << 3U |
         static_cast<std::size_t>(by_unit && layout.reshard_after_forward != 0) << 2U |
         static_cast<std::size_t>(by_unit && layout.double_buffer) << 1U |
         static_cast<std::size_t>(layout.offload_activations);
}

ResidentTotals resident_totals(const StageParts& parts, const StageContext& context) {
  const StageResidents residents = stage_residents(parts, context);
  return {residents.workspace() + residents.placeholders.bytes(), residents.communicators.bytes(),
          residents.step_block.bytes()};
}

StagePeaks stage_peaks(const StateTotals& states, const PassTotals& pass,
                       const ResidentTotals& residents, const StageParts& parts,
                       const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const auto reserved_at = [&](std::int64_t allocated, std::int64_t late_gradients) {
    return allocated + allocator_slack_bytes(allocated, states.resting + late_gradients, rules);
  };
  // Of the phases after the first step, which has no more.
  const bool made = context.num_microbatches > 1 && !gradients_wait(context);
  const std::int64_t late = made ? states.late_gradients : pass.late_gradients;
  const std::int64_t steady = states.resting + residents.workspace + residents.step_block;
  const std::int64_t in_pass = steady + pass.bytes + late;
  const std::int64_t in_step = steady + states.step;
  std::int64_t reserved = reserved_at(in_pass, late);
  // Slack grows with both.
  if (in_step > in_pass || states.late_gradients > late) {
    reserved = std::max(reserved, reserved_at(in_step, states.late_gradients));
  }
  StagePeaks peak;
  peak.allocated = Bytes(std::max(in_pass, in_step));
  peak.reserved = Bytes(reserved);
  peak.point = Bytes(reserved + rules.runtime.context + residents.communicators);
  peak.upper = peak.point + memory_doubt(reserved, pass, residents, parts, rules).total();
  return peak;
}

MemoryDoubt memory_doubt(std::int64_t reserved, const PassTotals& pass,
                         const ResidentTotals& residents, const StageParts& parts,
                         const MemoryRules& rules) {
  const auto share = [](std::int64_t bytes, double of) {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * of);
  };
  MemoryDoubt doubt;
  doubt.allocator = share(reserved, rules.runtime.doubt_share);
  doubt.communicator = share(residents.communicators, kCommunicatorDoubt);
  doubt.runtime = share(rules.runtime.context, kRuntimeDoubt);
  doubt.activations = share(pass.working, kWorkingDoubt);
  doubt.expert_imbalance = share(parts.routed_saved, kImbalanceDoubt);
  return doubt;
}

}  // namespace shardwise
