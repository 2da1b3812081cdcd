#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/software/time_rules.h"
#include "planner/schedule/pipeline.h"
#include "planner/schedule/stages.h"

namespace shardwise {

/// Kernels that the host issues for a layer.
struct LayerLaunches {
  double forward = 0;
  double recompute = 0;
  double backward = 0;
  double weights = 0;  // of these, for gradients of weights
};

/// One layer of a kind in a pipeline.
struct LayerPace {
  ChunkTime time;     // for one micro-batch on the slowest GPU, without what is hidden
  Seconds recompute;  // part of time.backward, before the rest
  LayerLaunches launches;
  std::int64_t dense = 0;  // trained elements on this rank, with those copied
  std::int64_t routed = 0;
  std::int64_t saved = 0;  // bytes kept to backward
  bool root = false;       // outside the blocks: embedding, head; of our executor MTP too
  bool head = false;
  bool tied_to_head = false;            // an embedding whose table the head of its chunk has too
  std::int64_t copied = 0;              // of the token table of another stage
  RootPlace place;                      // of one outside the units
  const LayerMemory* memory = nullptr;  // outlives this
  TierTraffic traffic;                  // inside the layer, for one micro-batch
};

/// Layers of one kind that follow one another in a chunk.
struct PacedRun {
  std::int32_t kind = 0;
  std::int32_t layers = 0;
  friend bool operator==(const PacedRun&, const PacedRun&) = default;
};

/// All micro-batches through all stages. Nothing of data parallelism; what that adds is found with
/// the layers of the chunks.
struct PipelineTimes {
  PipelineRun run;
  Seconds without_messages;  // length of a run whose messages take no time
  std::shared_ptr<const PipelineSlots> slots;
  std::vector<LayerPace> layers;  // layer_paces()
  /// Chunk by chunk, in forward order; where messages take turns with buffers a chunk's first and
  /// last layer are runs of their own.
  std::vector<PacedRun> runs;
  std::vector<std::uint32_t> chunk;   // by stage x chunks + chunk: its first run, and one more
  std::vector<ChunkTime> chunk_time;  // by stage x chunks + chunk
  std::vector<ChunkEdges> edges;      // the same, where messages take turns

  std::span<const PacedRun> runs_of(std::size_t place) const {
    return std::span<const PacedRun>(runs).subspan(chunk[place], chunk[place + 1] - chunk[place]);
  }
};

/// Time a pass holds the compute stream of the slowest GPU, which all ranks wait for.
inline Seconds on_slowest_gpu(const PassTime& pass, const TimeRules& rules) {
  return pass.stream() + pass.compute() * rules.slowest_gpu_excess;
}

/// Part of the exchange of a layer's experts beside the compute of another micro-batch: the
/// job asks for it, or the schedule is made for it. Compute loses to it what it loses to
/// collectives.
Seconds hidden_exchange(const LayerTime& layer, const TimeRules& rules, const Layout& layout);
/// The share of that exchange that stops compute. 1 = all, as where there is none.
double exchange_left(const LayerTime& layer, const TimeRules& rules, const Layout& layout);

/// Times by kind, and once more the last layer of the stage that holds a copy of the token table.
/// \param times, memories  by kind; `memories` outlive what is made of this
std::vector<LayerPace> layer_paces(std::span<const LayerTime> times,
                                   std::span<const LayerMemory> memories, const TimeRules& rules,
                                   const Layout& layout, std::span<const StageLayers> stages);

/// All but `run` and `without_messages`. \param layers  layer_paces() of the same stages
PipelineTimes pipeline_times(std::shared_ptr<const PipelineSlots> slots,
                             std::span<const StageLayers> stages, std::vector<LayerPace> layers);

/// Sweeps through the schedule of `pipeline` for both. \param hop  one message
void sweep(PipelineTimes& pipeline, Seconds hop, SlotEnds& ends);

}  // namespace shardwise
