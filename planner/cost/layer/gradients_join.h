#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Whether a micro-batch's gradients join those of earlier ones as passes make them, and are not
/// reduced on their own.
bool gradients_join(const Layout& layout, std::int64_t num_microbatches);

}  // namespace shardwise
