#pragma once

#include <array>
#include <cstddef>

#include "planner/cost/data_parallel_moves.h"
#include "planner/cost/leaf_context.h"
#include "planner/cost/stage_times.h"

namespace shardwise {

/// What a pass loses to a collective beside it, by how much of it is matrix products.
struct PassTax {
  double forward = 0;
  double backward = 0;
};
/// Of a collective within a node, and of one that leaves it.
using PassTaxes = std::array<PassTax, 2>;

/// The compute that data parallelism hides behind, whatever it moves.
struct ComputeBeside {
  double stretch = 1;      // how much longer a pass takes than its stream time, as the host issues
                           // too slowly
  PassTaxes slowest;       // of the slowest stage
  PassTaxes first;         // and of the first
  Seconds forward_window;  // passes of the first stage, which its buckets have beside them
  Seconds backward_window;
};
/// Reads of the layout neither mesh nor states.
ComputeBeside compute_beside(const StageTimes& stages, const LeafContext& context, double stretch);

/// Data-parallel communication of a step that nothing hides.
struct DataParallelTime {
  Seconds per_microbatch;  // exposed in every micro-batch
  // Of that, where units move one by one: what the first kind of a pass waits for, and the others.
  struct Waits {
    Seconds first;
    Seconds others;
    Seconds total() const { return first + others; }
  };
  Waits forward;
  Waits backward;
  Seconds once;  // exposed once a step
};

/// When the engine moves what the placements say, on one stage (pipelines: pipeline_data).
/// docs/time.md, "Data parallel", has the formulas.
DataParallelTime data_parallel_time(const StageTimes& stages, const LeafContext& context,
                                    const DataParallelMoves& moves, const ComputeBeside& beside);

/// Sums over a step of what is moved, for reports.
struct DataParallelTraffic {
  Seconds gather;             // all parameter gathers, hidden or not
  Seconds reduce;             // all gradient reductions, hidden or not
  Seconds copies;             // into and out of communication buffers
  Seconds tax;                // compute lost to communication beside it
  double gathered_bytes = 0;  // full buffers on this rank
  double reduced_bytes = 0;
  double outer_gathered_bytes = 0;  // shards of the inner axis, over dp_replicate
  double outer_reduced_bytes = 0;
};
DataParallelTraffic data_parallel_traffic(const StageTimes& stages, const LeafContext& context,
                                          const DataParallelMoves& moves,
                                          const ComputeBeside& beside);

}  // namespace shardwise
