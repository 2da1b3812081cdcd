#include "planner/cost/memory/stage_totals.h"

#include <algorithm>

#include "planner/cost/memory/host_memory.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/stage_moments.h"
#include "planner/cost/memory/stage_residents.h"
#include "planner/cost/memory/unit_elements.h"
#include "planner/schedule/gathers_once.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/gradient_reductions.h"

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
                   s.main_weights.bytes() + s.gradients.bytes() + s.moment_bytes() +
                   s.narrow_casts.bytes() + s.narrow_scales.bytes() + s.router_buffers.bytes();
  totals.buffer = s.reduce_buffer.bytes();
  totals.late_gradients = s.late_gradients.bytes();
  totals.step_gradients = s.steady_step.gradients.bytes();
  totals.step = s.steady_step.bytes() + s.step_scratch.bytes() + s.flat_gradients.bytes() +
                s.received_gradients.bytes();
  totals.on_host = s.on_host.bytes();
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
  const bool queued = pads_whole_units(engine, *context.layout) && context.layout->zero_stage >= 2;
  const bool padded = queued || (rules.shard_multiple > 1 && context.layout->zero_stage >= 1);
  const bool parts_of_bucket = engine.reduce_buffer_elements > 0 && context.layout->zero_stage >= 1;
  const bool planned = padded || (plans_buffers(engine) && context.layout->zero_stage >= 2);
  // Gradients that lie beside others, under our kernels, do so where they are not reduced at once.
  const bool waits = shards_gradients(*context.layout) && !reduces_each(*context.layout);
  return waits || context.layout->reshards_to_groups() || casts_shards || gradients_grow ||
         planned || parts_of_bucket || rules.fp32_accumulation;
}

std::size_t pass_number(const EngineProfile& engine, const Layout& layout) {
  const bool two_buffers = engine.overlap_doubles_buffer && layout.overlap_grad_reduce;
  const bool by_unit = layout.zero_stage >= 2;
  const bool widths = by_unit || layout.pp == 1 || plans_buffers(engine);
  const auto stage = std::size_t{static_cast<unsigned char>(layout.zero_stage)};
  return static_cast<std::size_t>(two_buffers) << 6U | (by_unit || two_buffers ? stage << 4U : 0) |
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

namespace {

/// Bytes of a phase, and of gradients that it makes and frees.
struct Phase {
  std::int64_t allocated = 0;
  std::int64_t gradients = 0;
};

/// Gradients that are there when backward is done come with every micro-batch but the first, so
/// that passes find them there.
bool gradients_stay(const StageContext& context) {
  return context.num_microbatches > 1 && !gradients_wait(context);
}

/// Of passes and the optimizer's step, the phases after the first step, which has no more.
StagePeaks peaks_of(const Phase& passes, const Phase& step, const StateTotals& states,
                    const PassTotals& pass, const ResidentTotals& residents,
                    const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const auto reserved_in = [&](const Phase& phase) {
    return phase.allocated + allocator_slack_bytes(phase.allocated,
                                                   states.resting + phase.gradients, parts,
                                                   *context.layout, rules);
  };
  std::int64_t reserved = reserved_in(passes);
  // Slack grows with both.
  if (step.allocated > passes.allocated || step.gradients > passes.gradients) {
    reserved = std::max(reserved, reserved_in(step));
  }
  StagePeaks peak;
  peak.allocated = Bytes(std::max(passes.allocated, step.allocated));
  peak.reserved = Bytes(reserved);
  const std::int64_t outside = rules.runtime.context + residents.communicators;
  const std::int64_t allocated = peak.allocated.value();
  peak.needed = Bytes(allocated + fragment_bytes(allocated, rules) + outside);
  peak.point = Bytes(reserved + outside);
  peak.host_lacks = host_lacks(host_bytes(parts, context, states.on_host), rules);
  peak.upper = peak.point + memory_doubt(reserved, pass, residents, parts, rules).total();
  return peak;
}

std::int64_t steady_bytes(const StateTotals& states, const ResidentTotals& residents) {
  return states.resting + states.buffer + residents.workspace + residents.step_block;
}

}  // namespace

StagePeaks stage_peaks(const StateTotals& states, const PassTotals& pass,
                       const ResidentTotals& residents, const StageParts& parts,
                       const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const std::int64_t late = gradients_stay(context) ? states.late_gradients : pass.late_gradients;
  const std::int64_t steady = steady_bytes(states, residents);
  std::int64_t in_step = steady + states.step;
  const bool kept =
      keeps_buffers_between_steps(rules) || keeps_parts(*context.layout, *rules.engine);
  if (kept && !parts.moments.empty()) {
    const StageBuffers buffers = stage_buffers(parts, context);
    in_step += buffers_between_steps(buffers, context).bytes(rules) + buffers.parts.bytes(rules);
  }
  return peaks_of({steady + pass.bytes + late, late}, {in_step, states.step_gradients}, states,
                  pass, residents, parts, context);
}

StagePeaks least_peaks(const StateTotals& states, std::int64_t least_pass,
                       const ResidentTotals& residents, const StageParts& parts,
                       const StageContext& context) {
  const std::int64_t late = gradients_stay(context) ? states.late_gradients : 0;
  const std::int64_t steady = steady_bytes(states, residents);
  return peaks_of({steady + least_pass + late, late}, {steady + states.step, states.step_gradients},
                  states, {}, residents, parts, context);
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
