#pragma once

#include <cstdint>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"

namespace shardwise {

/// The parts that stage_peaks() adds up, for callers that look at millions of layouts: each depends
/// on a few choices of a layout and serves all that share them. In bytes.

/// Bytes of the states; whatever is recomputed, and whatever schedule runs. Kept from the first
/// step on but for what backward makes and the step frees.
struct StateTotals {
  std::int64_t resting = 0;
  std::int64_t buffer = 0;          // of reductions, there all the time
  std::int64_t late_gradients = 0;  // when backward is done
  std::int64_t step = 0;            // beyond `resting` in a steady optimizer step
  std::int64_t step_gradients = 0;  // part of it
  std::int64_t on_host = 0;
};
StateTotals state_totals(const StageStates& states);

/// Bytes at the fullest moment of a micro-batch; whatever data parallelism does with states, as far
/// as pass_follows_mesh() is false.
struct PassTotals {
  std::int64_t bytes = 0;           // without gradients that the step frees
  std::int64_t late_gradients = 0;  // of those, what is there when a step has one micro-batch
  std::int64_t working = 0;
};
PassTotals pass_totals(const StageParts& parts, const StageContext& context,
                       const StageStates& states);
/// Whether the totals of a pass differ between layouts that share zero_stage,
/// reshard_after_forward, double_buffer and offload_activations, but not their mesh and the rest
/// of what data parallelism does.
bool pass_follows_mesh(const StageContext& context);
/// Layouts that share all but mesh and states have the same totals of a pass, where they do not
/// follow the mesh, if this is the same: below kPassNumbers. Below ZeRO-2 nothing is gathered or
/// reduced layer by layer, and in a pipeline micro-batch's gradients lie beside others under our
/// executor alone.
inline constexpr std::size_t kPassNumbers = 128;
std::size_t pass_number(const EngineProfile& engine, const Layout& layout);

/// Bytes that libraries hold, whatever layers keep and whatever runs.
struct ResidentTotals {
  std::int64_t workspace = 0;  // from the first pass on
  std::int64_t communicators = 0;
  std::int64_t step_block = 0;
};
ResidentTotals resident_totals(const StageParts& parts, const StageContext& context);

StagePeaks stage_peaks(const StateTotals& states, const PassTotals& pass,
                       const ResidentTotals& residents, const StageParts& parts,
                       const StageContext& context);

/// Below each of stage_peaks(), found without the fullest moment.
/// \param least_pass  least_pass_bytes()
StagePeaks least_peaks(const StateTotals& states, std::int64_t least_pass,
                       const ResidentTotals& residents, const StageParts& parts,
                       const StageContext& context);

/// Bytes that may come on top of `reserved` ones.
MemoryDoubt memory_doubt(std::int64_t reserved, const PassTotals& pass,
                         const ResidentTotals& residents, const StageParts& parts,
                         const MemoryRules& rules);

}  // namespace shardwise
