#pragma once

#include "planner/cost/step/issued_passes.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/stage_times.h"
#include "planner/schedule/pipeline.h"

namespace shardwise {

/// The passes of a step with all that data parallelism and offloading do beside, before and after
/// them.
struct PipelineData {
  Seconds passes;  // from the first pass to the last reduction
  Seconds after;   // gathers of updated parameters that nothing runs beside
  Seconds copies;  // sums of the gradients of DualPipe's two copies, as far as they come after
};

/// Passes with what runs beside them layer by layer.
struct StreamedPasses {
  PipelineRun run;
  Seconds end;               // of the last operation
  std::vector<double> ends;  // of that of each stage of a pipeline, where it may be no pass
};

/// Whether activations are offloaded and nothing else moves layer by layer: then passes are the
/// same for every mesh and all states.
bool only_offloads(const LeafContext& context);
/// \param ends  filled \pre streams_beside_passes(context), or the host issues late
StreamedPasses streamed_passes(const StageTimes& stages, const LeafContext& context,
                               const StageKernels& kernels, SlotEnds& ends);

/// Trained elements whose gradients a rank of `stage` holds, of both copies of the model. \pre
/// copies_model(layout)
double elements_of_copies(const PipelineTimes& pipeline, const LeafContext& context,
                          std::size_t stage);

/// Parameters and gradients that move layer by layer hold passes up (PassStreams). Otherwise
/// buckets of updated parameters are waited for by the first pass of each chunk, and buckets of
/// gradients reduced beside the last ones: what is left when the last pass of a stage has ended is
/// waited for. docs/data_parallel_time.md.
/// \param issued    issued_run() of both
/// \param streamed  streamed_passes(), where only_offloads(context) and they were made already
PipelineData pipeline_data(const StageTimes& stages, const LeafContext& context,
                           const StageKernels& kernels, const IssuedRun& issued,
                           const StreamedPasses* streamed = nullptr);

}  // namespace shardwise
