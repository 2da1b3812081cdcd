#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/software/time_rules.h"
#include "planner/schedule/schedule.h"
#include "planner/schedule/stages.h"
#include "planner/spec/plan/placement.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// A layer that a stage runs.
struct StageLayer {
  std::int32_t layer = 0;  // index into ModelSpec::layers
  std::int32_t kind = 0;   // index into ModelSpec::kinds
  bool recomputed = false;
  bool whole = false;         // full recompute of every n-th layer leaves this one alone
  bool tied_to_head = false;  // an embedding whose table the head of its chunk works with too
  bool copies_table = false;  // holds the token table of another stage too: tied head, MTP
};

/// A chunk of the model on its stage.
struct ModelChunk {
  std::int32_t number = 0;         // position in the model, 0 … chunks - 1
  std::vector<StageLayer> layers;  // in forward order
};

/// Context that all stages of a plan are lowered from. Holds pointers into the plan.
struct LoweringContext {
  const Plan* plan = nullptr;
  bool first_step = false;
  bool buffers = true;  // operations list those that they allocate, use and free
  std::int64_t num_microbatches = 1;
  std::int32_t chunks = 1;  // of the model: pp x chunks of a stage, of both copies under DualPipe
  std::int64_t hop_bytes = 0;  // the activation that a stage hands to the next
  StatePlacement placement;
  ShardRanks shards;  // ranks that share a state placed shard_inner
  MemoryRules memory_rules;
  bool own_kernels = false;  // of our executor: those of the job, or it is lowered to run
  TimeRules time_rules;
  std::vector<LayerMemory> memories;          // by kind
  std::vector<LayerTime> times;               // by kind
  std::vector<std::vector<LayerItem>> items;  // by kind, at granularity `kernel`, or in regions
  bool regions = false;                       // cut_regions()
  std::vector<StageLayers> stages;
  std::vector<std::vector<ModelChunk>> stage_chunks;  // by stage, in order of the chunks
  std::vector<std::vector<PipelinePass>> orders;      // by stage: of its passes

  const Layout& layout() const { return plan->layout; }
  const EngineProfile& engine() const { return plan->engine; }
  const JobSpec& job() const { return plan->job; }
  /// Whether a chunk of a stage runs no micro-batch before, or after, this one. Under DualPipe each
  /// chunk runs half of them.
  bool first_microbatch(std::int16_t chunk, std::int32_t microbatch) const;
  bool last_microbatch(std::int16_t chunk, std::int32_t microbatch) const;
  StageContext of_stage(std::int32_t stage) const {
    return {&memory_rules, &plan->layout, stage, num_microbatches};
  }
  DType weight_dtype() const;    // of a weight on its way between ranks
  DType gradient_dtype() const;  // of a gradient
  double gradient_bytes() const;
};

/// \param plan  must outlive the result \param num_microbatches  0: the plan's
/// \pre check_layout has no diagnostics
LoweringContext lowering_context(const Plan& plan, Granularity granularity, bool first_step,
                                 std::int64_t num_microbatches = 0);

/// Cuts passes of layers into regions (KernelPasses) where ranks meet inside them. Kinds of layers
/// without collectives of their own stay one operation. \pre lowered layer by layer
void cut_regions(LoweringContext& context);

}  // namespace shardwise
