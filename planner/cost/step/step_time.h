#pragma once

#include <cstdint>

#include "planner/cost/step/data_parallel_moves.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/optimizer_time.h"
#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pipeline_data.h"
#include "planner/cost/step/stage_times.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Communication and idle time that step_time found, for reports. Sums over a step.
struct StepDetail {
  Seconds gather;             // parameter all-gathers, hidden or not
  Seconds reduce;             // gradient reduction, hidden or not
  Seconds copies;             // of gathered weights and of gradients, part of dp_exposed
  Seconds overlap_tax;        // compute slowed by communication beside it, part of dp_exposed
  Seconds finalize;           // reductions after the last backward pass, part of optimizer
  Seconds wire;               // the busiest link's time for its bytes
  Seconds messages;           // between stages: those that are waited for, and others of a stage
  double gathered_bytes = 0;  // full buffers on this rank, over the step
  double reduced_bytes = 0;
  Seconds copied;  // between GPU and host, hidden or not
  double offload_bytes = 0;
  BytesPerSecond offload_required;  // bandwidth at which offloading activations would be hidden
};

/// Kernels that the host of one rank issues for one micro-batch on `stage`: those of its layers,
/// and in a pipeline what each chunk receives and sends, forward and backward.
double kernels_a_microbatch(const StageTime& stage, const Layout& layout);

/// Where the time of a step goes on the slowest stage. Plain values in and out; allocates nothing.
/// docs/time.md, "Step time", has every formula.
TimeParts step_time(const StageTimes& stages, const LeafContext& context,
                    StepDetail* detail = nullptr);

/// The parts that step_time() puts together, for callers that look at millions of layouts: each
/// depends on a few choices of a layout and serves all that share them.

/// Part of a step that pipeline and layer choice decide, whatever the mesh of data parallelism and
/// the states on it.
struct PipelineStep {
  TimeParts parts;    // those that nothing else changes
  IssuedRun issued;   // passes, with the messages and hosts that are waited for
  Seconds messages;   // of a stage, hidden or not
  Seconds input;      // reading a batch, hidden or not
  Seconds straggler;  // what the slowest GPU computes longer than its host makes it wait
  StageKernels kernels;
};
/// Time a node takes to read the batch of a step, hidden or not; 0 where storage has no figure.
Seconds input_time(const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches);
/// Reads of the layout neither mesh nor states nor offload_activations.
PipelineStep pipeline_step(const StageTimes& stages, const LeafContext& context);

/// Times of a step to move its states and update them, whatever runs beside that.
struct StateTimes {
  DataParallelMoves moves;
  OptimizerTime optimizer;
};
/// Reads of `stages` what same_elements() compares; of the layout mesh, states, fp32_gradients and
/// sequence_parallel.
StateTimes state_times(const StageTimes& stages, const LeafContext& context);

/// \param streamed  of a layout that only_offloads(): streamed_passes(), where they were made
TimeParts step_time(const StageTimes& stages, const LeafContext& context, const PipelineStep& step,
                    const StateTimes& states, const StreamedPasses* streamed = nullptr);

/// Least of that, found in a few additions: nothing that states move is waited for.
Seconds least_step_time(const PipelineStep& step, const StateTimes& states);

/// Traffic of activations between the slowest stage and its host, all over one link: no step of a
/// pipeline that offloads them takes less.
Seconds offloaded(const StageTimes& stages, const LeafContext& context);

}  // namespace shardwise
