#pragma once

#include <span>

#include "planner/cost/pipeline.h"
#include "planner/cost/pipeline_slots.h"
#include "planner/spec/units.h"

namespace shardwise {

/// PipelineSweep of ChunkPasses to the bit, with messages and without, in one walk that has no
/// branches: each slot begins when the last of what it waits for has ended. It takes half the time.
/// \param chunks  by stage x chunks + chunk
/// \pre no loops, and messages take no turns
RunAndLength sweep_plain(const PipelineSlots& slots, std::span<const ChunkTime> chunks, Seconds hop,
                         SlotEnds& ends);

}  // namespace shardwise
