#pragma once

#include "planner/cost/step/data_parallel_moves.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"

namespace shardwise {

/// Sums over a step of what is moved, for reports.
struct DataParallelTraffic {
  Seconds gather;             // all parameter gathers, hidden or not
  Seconds reduce;             // all gradient reductions, hidden or not
  Seconds copies;             // into and out of communication buffers
  double gathered_bytes = 0;  // full buffers on this rank
  double reduced_bytes = 0;
};
DataParallelTraffic data_parallel_traffic(const StageTimes& stages, const LeafContext& context,
                                          const DataParallelMoves& moves);

}  // namespace shardwise
