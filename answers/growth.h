#pragma once

#include <cstdint>
#include <vector>

#include "answers/asked_step.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::sim {

/// Point of equal work a GPU on more and more GPUs: all of them one shard, or a shard a node and
/// replicas between nodes.
struct GrowthPoint {
  std::int64_t gpus = 0;
  StepReport full;
  StepReport hybrid;
};

/// Grows from one node to `most` GPUs, each time twice as many. \returns the points, or what is
/// wrong with `most` or with one of the steps \param asked  no file and no GPUs; its batch is
/// one_microbatch \param node   GPUs of a node of its cluster
Result<std::vector<GrowthPoint>> growth(const AskedStep& asked, std::int64_t node,
                                        std::int64_t most);

/// The GPUs on which one of the two ways does not fit.
std::vector<std::int64_t> misfits(const std::vector<GrowthPoint>& points,
                                  StepReport GrowthPoint::*way);

}  // namespace shardwise::sim
