#pragma once

#include <cstdint>
#include <string>

#include "executor/kernels/compute/gradient_check.h"

namespace shardwise::exec {

/// Fault that a step found in this rank's own gradients, with the step and the bucket.
/// \pre found.bucket >= 0
std::string what_is_wrong(const GradientCheckState& found, std::int64_t step);

}  // namespace shardwise::exec
