#pragma once

#include <array>

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"

namespace shardwise {

/// Communication of one unit of gathering and reduction.
struct UnitMoves {
  Seconds gather;
  Seconds gather_again;  // in backward, of what forward left: nothing where it is whole still
  Seconds reduce;
  Seconds outer;  // reduction over dp_replicate, of what the inner one leaves
};

/// Communication of a step's states, each piece as if nothing ran beside it. Communication is the
/// change of placement (ARCHITECTURE.md): what it moves follows from the placements.
struct DataParallelMoves {
  // Parameters are whole on every rank: of the first stage, in equal buckets.
  Seconds reduce;        // all buckets, over the inner axis
  Seconds reduce_outer;  // over dp_replicate, of what that leaves
  Seconds gather;        // of updated parameters; nothing where every rank updates all

  // Parameters are sharded: of the slowest stage.
  Seconds copies_out;    // of gathered weights, a micro-batch
  Seconds copies_once;   // of the parts of them that stay to the end of the step
  Seconds copies_in;     // of gradients, a reduction
  Seconds outer_gather;  // of updated parameters
  std::array<UnitMoves, kMaxUnitKinds> units;
};

/// It reads the elements of `stages` (same_elements), no times; of the layout mesh, states and
/// fp32_gradients: the search makes it once for all pipelines and layer choices alike in these.
DataParallelMoves data_parallel_moves(const StageTimes& stages, const LeafContext& context);

/// An element of a gradient on its way between ranks, in bytes.
double gradient_bytes(const TimeRules& rules, const Layout& layout);

/// Memory traffic of summing in fp32 what an all-to-all brought of `elements` gradients, into a
/// shard of 1/ranks of them: all are read, the sums written in fp32, read again and written as
/// gradients. Source: Megatron-LM@000a7170:megatron/core/distributed/
/// reduce_scatter_with_fp32_accumulation.py (torch.sum into an fp32 tensor, then copy_).
double fp32_sum_bytes(double gradient_bytes, double elements, double ranks);
inline constexpr double kFp32SumKernels = 2;

}  // namespace shardwise
