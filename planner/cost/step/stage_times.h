#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/software/time_rules.h"
#include "planner/cost/step/pipeline_times.h"
#include "planner/schedule/stages.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// Equal layers of a stage, each a unit of gathering and reduction.
struct UnitTime {
  Seconds forward;   // of one micro-batch on the slowest GPU: compute and what stops it
  Seconds backward;  // recompute included
  Unit elements;     // trained, on this rank
  std::int32_t count = 0;
  bool root = false;       // outside the blocks: embedding, head
  std::int64_t saved = 0;  // bytes of activations that one keeps to backward, as a mean
};
inline constexpr int kMaxUnitKinds = 8;

/// Cost of one micro-batch on one pipeline stage, all its model chunks together.
struct StageTime {
  PassTime forward;
  PassTime backward;
  PassTime recompute;
  Seconds weight_gradient;
  Seconds hidden_experts;  // part of the exchange that runs beside another micro-batch's compute
  Unit elements;           // trained, on this rank
  std::int64_t replicated = 0;       // of these, elements that every tp rank has whole
  std::int64_t head_norms = 0;       // of these, norms of queries and keys
  std::int64_t copied_heads = 0;     // elements of keys and values that several tp ranks have
  std::int64_t counted_experts = 0;  // whose load an untrained bias evens out, over the layers
  std::int64_t tensors = 0;
  std::int64_t saved = 0;  // bytes of activations kept to backward
  std::int32_t kinds = 0;
  std::array<UnitTime, kMaxUnitKinds> units{};  // in forward order of their first layer

  Seconds compute() const { return forward.compute() + backward.compute() + recompute.compute(); }
  Seconds backward_stream() const { return backward.stream() + recompute.stream(); }
  Seconds stream() const { return forward.stream() + backward_stream(); }
};

/// Stages that hold equally many layers of each kind, one after the other.
struct StageMix {
  struct Share {
    std::int32_t kind = 0;  // index into ModelSpec::kinds
    std::int32_t layers = 0;
    std::int32_t runs = 1;  // of layers that follow one another: one a chunk
    friend bool operator==(const Share&, const Share&) = default;
  };
  std::vector<Share> shares;  // in forward order of their first layer
  std::int32_t first = 0;     // stage
  std::int32_t stages = 0;
  bool copies_embedding = false;
};
std::vector<StageMix> stage_mixes(std::span<const StageLayers> stages);

/// A pipeline for one micro-batch. Everything that does not depend on data parallelism, on the
/// number of micro-batches or on the ZeRO stage; the search makes one for many layouts.
struct StageTimes {
  StageTime slowest;  // most stream time; sets the pace
  StageTime first;    // stage 0: last to end its backward passes
  std::int32_t slowest_stage = 0;
  // Elements of the stage that has most dense ones, and of that with most routed ones: how many a
  // rank updates depends on the ranks that share each.
  Unit most_dense;
  Unit most_routed;
  std::int64_t most_tensors = 0;
  std::int64_t tied_elements = 0;  // embedding shared by first and last stage; 0 = none
  std::int64_t hop_bytes = 0;      // activation sent from a stage to the next
  Seconds hop;                     // one such message
  TierTraffic hop_traffic;         // of it
  PipelineTimes pipeline;          // all micro-batches through all stages
};

/// Whether both hold the same trained elements in the same units, stage by stage as far as
/// data parallelism and the optimizer look at them: however long anything takes.
bool same_elements(const StageTimes& a, const StageTimes& b);

/// Everything but the message and the pipeline.
/// \param times, memories  by kind, for the same model and layout
StageTimes stage_sums(const Layout& layout, const TimeRules& rules,
                      std::span<const LayerTime> times, std::span<const LayerMemory> memories,
                      std::span<const StageMix> mixes);

/// The activation that one micro-batch sends from a stage to the next, over `group` (of kind pp).
struct StageHop {
  std::int64_t bytes = 0;
  Seconds time;
  TierTraffic traffic;
};
StageHop stage_hop(const ModelSpec& model, const JobSpec& job, const ClusterSpec& cluster,
                   const Layout& layout, const GroupShape& group);

/// All together. \pre `memories` outlive it
StageTimes stage_times(const ModelSpec& model, const JobSpec& job, const TimeRules& rules,
                       const Layout& layout, std::span<const LayerTime> times,
                       std::span<const LayerMemory> memories, std::span<const StageLayers> stages,
                       std::int64_t num_microbatches);

}  // namespace shardwise
