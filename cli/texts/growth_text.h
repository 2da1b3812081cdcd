#pragma once

#include <string>
#include <vector>

#include "answers/growth.h"

namespace shardwise::cli {

/// A line for each number of GPUs: step, MFU and exposed data-parallel communication of both, and
/// which is faster.
std::string growth_text(const std::vector<sim::GrowthPoint>& points, bool colour);
/// Facts as above for a program.
std::string growth_json(const std::vector<sim::GrowthPoint>& points);

}  // namespace shardwise::cli
