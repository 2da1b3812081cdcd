#pragma once

#include "planner/cost/step_time.h"
#include "planner/spec/placement.h"

namespace shardwise {

/// Data-parallel communication of a step on one stage.
struct DataParallelTime {
  Seconds per_microbatch;  // exposed in every micro-batch
  Seconds once;            // exposed once a step
  Seconds copies;  // into and out of communication buffers over the step, in `per_microbatch`
  Seconds tax;     // compute lost to communication beside it, in `per_microbatch` and `once`
  Seconds gather;  // all parameter gathers of the step, hidden or not
  Seconds reduce;  // all gradient reductions of the step, hidden or not
  double gathered_bytes = 0;  // full buffers on this rank, over the step
  double reduced_bytes = 0;
  double outer_gathered_bytes = 0;  // shards of the inner axis, over dp_replicate
  double outer_reduced_bytes = 0;
};

/// Communication is the change of placement (ARCHITECTURE.md): what it moves follows from the
/// placements, when it moves from the engine. docs/time.md, "Data parallel", has the formulas.
/// \param stretch  how much longer a pass takes than its stream time, as the host issues too slowly
DataParallelTime data_parallel_time(const StageTimes& stages, const LeafContext& context,
                                    double stretch = 1);

/// An element of a gradient on its way between ranks, in bytes.
double gradient_bytes(const TimeRules& rules, const Layout& layout);

/// Memory traffic of summing in fp32 what an all-to-all brought of `elements` gradients, into a
/// shard of 1/ranks of them: all are read, the sums written in fp32, read again and written as
/// gradients. Source: Megatron-LM@000a7170:megatron/core/distributed/
/// reduce_scatter_with_fp32_accumulation.py (torch.sum into an fp32 tensor, then copy_).
double fp32_sum_bytes(double gradient_bytes, double elements, double ranks);
inline constexpr double kFp32SumKernels = 2;

}  // namespace shardwise
