#pragma once

#include <cstdint>
#include <vector>

#include "planner/schedule/pipeline_slots.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// All passes and messages of a step one by one, without loops. Time and space grow with the
/// micro-batches.
struct SlotOrder {
  PipelineSlots slots;
  std::vector<std::int64_t> exchanged;  // by stage: messages with the next one, both ways
};

/// \param planned_buffers  of pipeline_slots()
SlotOrder slot_order(const Layout& layout, std::int64_t num_microbatches, bool planned_buffers);

}  // namespace shardwise
