#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/pipeline.h"
#include "planner/cost/pipeline_slots.h"
#include "planner/cost/plain_slots.h"
#include "planner/spec/units.h"

namespace shardwise {

/// PipelineSweep of ChunkPasses to the bit, with messages and without, in one walk that has no
/// branches: each slot begins when the last of what it waits for has ended. It takes a quarter of
/// the time.
/// \param chunks  by stage x chunks + chunk
RunAndLength sweep_plain(const PlainSlots& slots, std::span<const ChunkTime> chunks, Seconds hop,
                         SlotEnds& ends);

}  // namespace shardwise
