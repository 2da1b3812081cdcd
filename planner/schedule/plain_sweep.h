#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/schedule/pipeline.h"
#include "planner/schedule/pipeline_slots.h"
#include "planner/schedule/plain_slots.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// PipelineSweep of ChunkPasses to the bit, with messages and without, in one walk that has no
/// branches: each slot begins when the last of what it waits for has ended. It takes a quarter of
/// the time.
/// \param chunks  by stage x chunks + chunk
RunAndLength sweep_plain(const PlainSlots& slots, std::span<const ChunkTime> chunks, Seconds hop,
                         SlotEnds& ends);

}  // namespace shardwise
