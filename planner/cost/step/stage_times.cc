#include "planner/cost/step/stage_times.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/cost/collectives/collective.h"
#include "planner/cost/layer/token_table.h"
#include "planner/schedule/kept_slots.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

bool same(const Unit& a, const Unit& b) { return a.dense == b.dense && a.routed == b.routed; }

bool same_elements(const StageTime& a, const StageTime& b) {
  if (!same(a.elements, b.elements) || a.replicated != b.replicated ||
      a.head_norms != b.head_norms || a.copied_heads != b.copied_heads ||
      a.counted_experts != b.counted_experts || a.kinds != b.kinds) {
    return false;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.kinds); ++i) {
    const UnitTime& x = a.units[i];
    const UnitTime& y = b.units[i];
    if (!same(x.elements, y.elements) || x.count != y.count || x.root != y.root) return false;
  }
  return true;
}

/// Keeps the unit that has more elements of the first kind, or of the other where both have as
/// many.
void take_larger(Unit& largest, const Unit& unit, std::int64_t Unit::*kind,
                 std::int64_t Unit::*other) {
  if (std::pair(unit.*kind, unit.*other) > std::pair(largest.*kind, largest.*other)) largest = unit;
}

/// Layers of a share that run again: in each run every n-th from the first, runs as even as can be.
std::int64_t layers_again(const StageMix::Share& share, std::int64_t interval) {
  const std::int64_t each = share.layers / share.runs;
  const std::int64_t longer = share.layers % share.runs;
  return (share.runs - longer) * ceil_div(each, interval) + longer * ceil_div(each + 1, interval);
}

void add_layers(StageTime& stage, const LayerTime& time, const LayerMemory& memory,
                const TimeRules& rules, const StageMix::Share& share, Seconds hidden) {
  const std::int32_t layers = share.layers;
  const double n = layers;
  stage.forward += n * time.forward;
  stage.backward += n * time.backward;
  // `time` has a layer's mean.
  const auto again = static_cast<double>(memory.recompute_interval *
                                         layers_again(share, memory.recompute_interval));
  stage.recompute += again * time.recompute;
  stage.weight_gradient += n * time.weight_gradient;
  stage.hidden_experts += n * hidden;
  const Unit elements{memory.parameters.dense, memory.parameters.routed};
  stage.elements.dense += elements.dense * layers;
  stage.elements.routed += elements.routed * layers;
  stage.tensors += memory.parameters.tensors * layers;
  stage.saved += memory.saved * layers;
  stage.replicated += memory.parameters.replicated * layers;
  stage.head_norms += memory.parameters.head_norms * layers;
  stage.copied_heads += memory.parameters.copied_heads * layers;
  stage.counted_experts += memory.parameters.counted_experts * layers;

  const bool root = memory.role == LayerRole::embedding || memory.role == LayerRole::head;
  // A mean where recompute takes every n-th layer.
  const std::int64_t interval = memory.recompute_interval;
  const std::int64_t saved = (memory.saved + (interval - 1) * memory.saved_whole) / interval;
  const Seconds forward = on_slowest_gpu(time.forward, rules);
  const Seconds backward =
      on_slowest_gpu(time.backward, rules) + on_slowest_gpu(time.recompute, rules);
  for (std::int32_t i = 0; i < stage.kinds; ++i) {
    UnitTime& unit = stage.units[static_cast<std::size_t>(i)];
    if (unit.forward == forward && unit.backward == backward &&
        unit.elements.dense == elements.dense && unit.elements.routed == elements.routed &&
        unit.root == root && unit.saved == saved) {
      unit.count += layers;
      return;
    }
  }
  SHARDWISE_CHECK(stage.kinds < kMaxUnitKinds, "more kinds of layers than a stage may have");
  stage.units[static_cast<std::size_t>(stage.kinds++)] = {forward, backward, elements,
                                                          layers,  root,     saved};
}

/// A micro-batch meets one of two chunks of a stage: on average half of what the stage holds.
void halve(StageTime& stage) {
  stage.forward = 0.5 * stage.forward;
  stage.backward = 0.5 * stage.backward;
  stage.recompute = 0.5 * stage.recompute;
  stage.weight_gradient = 0.5 * stage.weight_gradient;
  stage.hidden_experts = 0.5 * stage.hidden_experts;
  for (std::int32_t i = 0; i < stage.kinds; ++i) {
    UnitTime& unit = stage.units[static_cast<std::size_t>(i)];
    unit.forward = 0.5 * unit.forward;
    unit.backward = 0.5 * unit.backward;
  }
}

}  // namespace

std::vector<StageMix> stage_mixes(std::span<const StageLayers> stages) {
  std::vector<StageMix> mixes;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    StageMix mix;
    for (const StageRun& run : stages[i].runs) {
      const auto same = std::ranges::find(mix.shares, run.kind, &StageMix::Share::kind);
      if (same == mix.shares.end()) {
        mix.shares.push_back({run.kind, run.layers});
      } else {
        same->layers += run.layers;
        ++same->runs;
      }
    }
    mix.first = static_cast<std::int32_t>(i);
    mix.stages = 1;
    mix.copies_embedding = stages[i].copies_embedding;
    // The first stage is apart: its gradients are the last to be ready.
    if (i > 1 && mixes.back().shares == mix.shares &&
        mixes.back().copies_embedding == mix.copies_embedding) {
      ++mixes.back().stages;
    } else {
      mixes.push_back(std::move(mix));
    }
  }
  return mixes;
}

bool same_elements(const StageTimes& a, const StageTimes& b) {
  return same(a.most_dense, b.most_dense) && same(a.most_routed, b.most_routed) &&
         a.most_tensors == b.most_tensors && a.tied_elements == b.tied_elements &&
         same_elements(a.first, b.first) && same_elements(a.slowest, b.slowest);
}

StageTimes stage_sums(const Layout& layout, const TimeRules& rules,
                      std::span<const LayerTime> times, std::span<const LayerMemory> memories,
                      std::span<const StageMix> mixes) {
  StageTimes all;
  Seconds slowest;
  for (const StageMix& mix : mixes) {
    StageTime stage;
    for (const StageMix::Share& share : mix.shares) {
      const auto kind = static_cast<std::size_t>(share.kind);
      add_layers(stage, times[kind], memories[kind], rules, share,
                 hidden_exchange(times[kind], rules, layout));
    }
    if (mix.copies_embedding) {
      stage.elements.dense += table_elements(memories);
      stage.tensors += 1;
    }
    if (copies_model(layout)) halve(stage);
    const Seconds both = stage.stream() - stage.hidden_experts;
    take_larger(all.most_dense, stage.elements, &Unit::dense, &Unit::routed);
    take_larger(all.most_routed, stage.elements, &Unit::routed, &Unit::dense);
    all.most_tensors = std::max(all.most_tensors, stage.tensors);
    if (mix.first == 0) all.first = stage;
    if (mix.first == 0 || both > slowest) {
      slowest = both;
      all.slowest = stage;
      all.slowest_stage = mix.first;
    }
  }
  // Of a table that is trained: two stages sum its gradients.
  if (std::ranges::any_of(mixes, &StageMix::copies_embedding)) {
    all.tied_elements = table_elements(memories);
  }
  return all;
}

StageHop stage_hop(const ModelSpec& model, const JobSpec& job, const ClusterSpec& cluster,
                   const Layout& layout, const GroupShape& group) {
  const std::int64_t tokens = layout.micro_batch_size * ceil_div(job.sequence_length, layout.cp);
  const std::int64_t spread = layout.sequence_parallel ? ceil_div(tokens, layout.tp) : tokens;
  const Bytes bytes(spread * model.hidden_size * (job.precision == DType::fp32 ? 4 : 2));
  return {
      bytes.value(), collective_time(cluster, CollectiveKind::send_recv, bytes, group),
      tier_traffic(cluster, CollectiveKind::send_recv, static_cast<double>(bytes.value()), group)};
}

StageTimes stage_times(const ModelSpec& model, const JobSpec& job, const TimeRules& rules,
                       const Layout& layout, std::span<const LayerTime> times,
                       std::span<const LayerMemory> memories, std::span<const StageLayers> stages,
                       std::int64_t num_microbatches) {
  StageTimes all = stage_sums(layout, rules, times, memories, stage_mixes(stages));
  if (layout.pp > 1) {
    const ClusterSpec& cluster = *rules.cluster;
    const StageHop hop =
        stage_hop(model, job, cluster, layout, group_shape(cluster, layout, GroupKind::pp));
    all.hop_bytes = hop.bytes;
    all.hop = hop.time;
    all.hop_traffic = hop.traffic;
  }
  const auto slots = kept_slots(layout, num_microbatches, plans_buffers(*rules.engine));
  all.pipeline = pipeline_times(slots, stages, layer_paces(times, memories, rules, layout, stages));
  SlotEnds ends;
  sweep(all.pipeline, all.hop, ends);
  return all;
}

}  // namespace shardwise
