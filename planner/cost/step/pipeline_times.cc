#include "planner/cost/step/pipeline_times.h"

#include <algorithm>
#include <utility>

#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/arena_buffers.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

LayerPace pace_of(const LayerTime& time, const LayerMemory& memory, const TimeRules& rules,
                  const Layout& layout) {
  const double hidden = 1 - exchange_left(time, rules, layout);
  LayerPace pace;
  pace.time.forward = on_slowest_gpu(time.forward, rules) - time.forward.ep * hidden;
  pace.time.backward = on_slowest_gpu(time.backward, rules) +
                       on_slowest_gpu(time.recompute, rules) -
                       (time.backward.ep + time.recompute.ep) * hidden;
  pace.recompute = on_slowest_gpu(time.recompute, rules) - time.recompute.ep * hidden;
  pace.launches = {time.forward.kernels, time.recompute.kernels, time.backward.kernels,
                   time.weight_kernels};
  pace.time.weight_gradient = time.weight_gradient * (1 + rules.slowest_gpu_excess);
  pace.dense = memory.parameters.dense;
  pace.routed = memory.parameters.routed;
  pace.saved = memory.saved;
  pace.memory = &memory;
  pace.traffic = time.traffic;
  pace.head = memory.role == LayerRole::head;
  const bool planned = plans_buffers(*rules.engine);
  pace.root = planned ? is_root(memory.role) : pace.head || memory.role == LayerRole::embedding;
  return pace;
}

/// \param one_chunk  has all layers
void place_roots(std::vector<LayerPace>& paces, bool one_chunk, bool table_apart) {
  const auto find = [&](LayerRole role) {
    const auto found = std::ranges::find_if(
        paces, [&](const LayerPace& pace) { return pace.memory->role == role; });
    return one_chunk && found != paces.end() ? found->memory : nullptr;
  };
  const LayerMemory* const embedding = find(LayerRole::embedding);
  const LayerMemory* const head = find(LayerRole::head);
  for (LayerPace& pace : paces) {
    pace.place.table_apart = table_apart;
    if (pace.memory->role == LayerRole::head) pace.place.before = embedding;
    if (pace.memory->role == LayerRole::embedding) pace.place.after = head;
  }
}

/// \param copies  its last layer holds a copy of the token table
void add_layer_run(PipelineTimes& pipeline, const StageRun& run, bool copies) {
  if (run.layers > (copies ? 1 : 0)) {
    pipeline.runs.push_back({run.kind, run.layers - (copies ? 1 : 0)});
  }
  if (copies) pipeline.runs.push_back({static_cast<std::int32_t>(pipeline.layers.size()) - 1, 1});
}

/// The last chunk's first and last layer apart.
void cut_edges(PipelineTimes& pipeline) {
  std::vector<PacedRun>& runs = pipeline.runs;
  const std::size_t first = pipeline.chunk.back();
  const auto time = [&](const PacedRun& run) {
    return pipeline.layers[static_cast<std::size_t>(run.kind)].time;
  };
  if (first == runs.size()) {
    pipeline.edges.emplace_back();
    return;
  }
  pipeline.edges.push_back({time(runs[first]), time(runs.back())});
  if (runs.back().layers > 1) {
    --runs.back().layers;
    runs.push_back({runs.back().kind, 1});
  }
  if (runs[first].layers > 1) {
    --runs[first].layers;
    runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(first), {runs[first].kind, 1});
  }
}

}  // namespace

Seconds hidden_exchange(const LayerTime& layer, const TimeRules& rules, const Layout& layout) {
  const bool by_schedule = layout.pp > 1 && facts_of(layout).pairs_passes;
  if (!rules.expert_overlap && !by_schedule) return Seconds(0);
  const Seconds experts = layer.forward.ep + layer.backward.ep + layer.recompute.ep;
  const Seconds compute = layer.forward.compute() + layer.backward.compute();
  if (experts <= Seconds(0) || compute <= Seconds(0)) return Seconds(0);
  const bool across = std::int64_t{layout.ep} * layout.etp > rules.cluster->gpus_per_node;
  const OverlapTax& tax = across ? rules.overlap_tax_inter : rules.overlap_tax_intra;
  const double products = (layer.forward.gemm + layer.backward.gemm) / compute;
  return std::min(experts, compute) * (1 - tax.of(products, 1 - products));
}

double exchange_left(const LayerTime& layer, const TimeRules& rules, const Layout& layout) {
  const Seconds all = layer.forward.ep + layer.backward.ep + layer.recompute.ep;
  return all > Seconds(0) ? 1 - hidden_exchange(layer, rules, layout) / all : 1;
}

std::vector<LayerPace> layer_paces(std::span<const LayerTime> times,
                                   std::span<const LayerMemory> memories, const TimeRules& rules,
                                   const Layout& layout, std::span<const StageLayers> stages) {
  std::vector<LayerPace> paces;
  paces.reserve(times.size() + 1);
  for (std::size_t kind = 0; kind < times.size(); ++kind) {
    paces.push_back(pace_of(times[kind], memories[kind], rules, layout));
  }
  const bool one_chunk = layout.pp == 1 && layout.vpp == 1;
  if (one_chunk && std::ranges::any_of(memories, has_tied_table)) {
    for (LayerPace& pace : paces) pace.tied_to_head = pace.memory->role == LayerRole::embedding;
  }
  place_roots(paces, one_chunk, std::ranges::any_of(stages, &StageLayers::shares_table));
  const auto copies = std::ranges::find_if(stages, &StageLayers::copies_embedding);
  if (copies == stages.end()) return paces;
  LayerPace last = paces[static_cast<std::size_t>(copies->runs.back().kind)];
  last.copied = table_elements(memories);
  last.dense += last.copied;
  last.place.copied = token_table(memories);
  paces.push_back(last);
  return paces;
}

PipelineTimes pipeline_times(std::shared_ptr<const PipelineSlots> slots,
                             std::span<const StageLayers> stages, std::vector<LayerPace> layers) {
  PipelineTimes all;
  all.layers = std::move(layers);
  for (const StageLayers& stage : stages) {
    std::size_t next = 0;
    for (std::int32_t chunk = 0; chunk < slots->chunks; ++chunk) {
      all.chunk.push_back(static_cast<std::uint32_t>(all.runs.size()));
      ChunkTime sum;
      for (; next < stage.runs.size() && stage.runs[next].chunk == chunk; ++next) {
        const StageRun& run = stage.runs[next];
        const LayerPace& pace = all.layers[static_cast<std::size_t>(run.kind)];
        const ChunkTime& each = pace.time;
        // `each` has the mean of layers of which recompute takes every n-th.
        const std::int64_t interval = pace.memory->recompute_interval;
        const auto more =
            static_cast<double>(interval * ceil_div(run.layers, interval) - run.layers);
        add_layer_run(all, run, stage.copies_embedding && next + 1 == stage.runs.size());
        sum.forward += each.forward * run.layers;
        sum.backward += each.backward * run.layers + pace.recompute * more;
        sum.weight_gradient += each.weight_gradient * run.layers;
      }
      all.chunk_time.push_back(sum);
      if (!slots->room.empty()) cut_edges(all);
    }
  }
  all.chunk.push_back(static_cast<std::uint32_t>(all.runs.size()));
  all.slots = std::move(slots);
  return all;
}

void sweep(PipelineTimes& pipeline, Seconds hop, SlotEnds& ends) {
  RunAndLength both = run_pipeline(*pipeline.slots, pipeline.chunk_time, pipeline.edges, hop, ends);
  pipeline.run = std::move(both.run);
  pipeline.without_messages = both.without_messages;
}

}  // namespace shardwise
