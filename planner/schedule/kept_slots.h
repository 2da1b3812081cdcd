#pragma once

#include <cstdint>
#include <memory>

#include "planner/schedule/pipeline_slots.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// pipeline_slots(), made once for all layouts whose passes have the same order: of the schedules
/// asked for last, some are kept. Any thread may ask.
std::shared_ptr<const PipelineSlots> kept_slots(const Layout& layout, std::int64_t num_microbatches,
                                                bool planned_buffers);

}  // namespace shardwise
