#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/report.h"

namespace shardwise::cli {

/// The same work a GPU on more and more GPUs: all of them one shard, or a shard a node and replicas
/// between nodes.
struct GrowthPoint {
  std::int64_t gpus = 0;
  StepReport full;
  StepReport hybrid;
};

/// A line for each number of GPUs: step, MFU and exposed data-parallel communication of both, and
/// which is faster.
std::string growth_text(const std::vector<GrowthPoint>& points, bool colour);
/// The same facts for a program.
std::string growth_json(const std::vector<GrowthPoint>& points);

}  // namespace shardwise::cli
