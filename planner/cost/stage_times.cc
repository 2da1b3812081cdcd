#include "planner/cost/stage_times.h"

#include <algorithm>
#include <utility>

#include "planner/cost/collective.h"
#include "planner/spec/check.h"
#include "planner/spec/mesh.h"

namespace shardwise {
namespace {

std::int64_t sum(const Unit& unit) { return unit.dense + unit.routed; }

void take_larger(Unit& largest, const Unit& unit) {
  if (sum(unit) > sum(largest)) largest = unit;
}

void add_layers(StageTime& stage, const LayerTime& time, const LayerMemory& memory,
                std::int32_t layers) {
  const double n = layers;
  stage.forward += n * time.forward;
  stage.backward += n * time.backward;
  stage.recompute += n * time.recompute;
  stage.weight_gradient += n * time.weight_gradient;
  if (time.forward.ep > Seconds(0)) {
    stage.beside_experts += n * (time.forward.compute() + time.backward.compute());
    stage.beside_gemm += n * (time.forward.gemm + time.backward.gemm);
  }
  const Unit elements{memory.parameters.dense, memory.parameters.routed};
  stage.elements.dense += elements.dense * layers;
  stage.elements.routed += elements.routed * layers;
  stage.tensors += memory.parameters.tensors * layers;
  stage.saved += memory.saved * layers;
  stage.replicated += memory.parameters.replicated * layers;
  stage.head_norms += memory.parameters.head_norms * layers;
  stage.counted_experts += memory.parameters.counted_experts * layers;

  const bool root = memory.role == LayerRole::embedding || memory.role == LayerRole::head;
  const Seconds forward = time.forward.stream();
  const Seconds backward = time.backward.stream() + time.recompute.stream();
  for (std::int32_t i = 0; i < stage.kinds; ++i) {
    UnitTime& unit = stage.units[static_cast<std::size_t>(i)];
    if (unit.forward == forward && unit.backward == backward &&
        unit.elements.dense == elements.dense && unit.elements.routed == elements.routed &&
        unit.root == root) {
      unit.count += layers;
      return;
    }
  }
  SHARDWISE_CHECK(stage.kinds < kMaxUnitKinds, "more kinds of layers than a stage may have");
  stage.units[static_cast<std::size_t>(stage.kinds++)] = {forward, backward, elements, layers,
                                                          root};
}

/// Elements of the token table on one rank, when another stage holds a copy of it.
std::int64_t tied_elements_of(const ModelSpec& model, const Layout& layout,
                              std::span<const StageMix> mixes) {
  if (std::ranges::none_of(mixes, &StageMix::copies_embedding)) return 0;
  for (const LayerSpec& layer : model.kinds) {
    if (layer.role != LayerRole::embedding) continue;
    for (const ParameterSpec& p : layer.parameters) {
      if (p.tp == TpSplit::vocab) return ceil_div(p.elements(), layout.tp);
    }
  }
  return 0;
}

/// A micro-batch meets one of two chunks of a stage: on average half of what the stage holds.
void halve(StageTime& stage) {
  stage.forward = 0.5 * stage.forward;
  stage.backward = 0.5 * stage.backward;
  stage.recompute = 0.5 * stage.recompute;
  stage.weight_gradient = 0.5 * stage.weight_gradient;
  stage.beside_experts = 0.5 * stage.beside_experts;
  stage.beside_gemm = 0.5 * stage.beside_gemm;
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

StageTimes stage_sums(const ModelSpec& model, const Layout& layout,
                      std::span<const LayerTime> times, std::span<const LayerMemory> memories,
                      std::span<const StageMix> mixes, bool hides_experts) {
  StageTimes all;
  // Without exchange that compute can hide, forward and backward.
  const auto left = [&](const StageTime& stage) {
    const Seconds experts = stage.forward.ep + stage.backward.ep + stage.recompute.ep;
    const bool hides = hides_experts && experts > Seconds(0);
    const double hidden = hides ? std::min(1.0, stage.beside_experts / experts) : 0;
    return std::pair{stage.forward.stream() - stage.forward.ep * hidden,
                     stage.backward_stream() - (stage.backward.ep + stage.recompute.ep) * hidden};
  };
  Seconds slowest;
  Seconds most_forward;
  Seconds most_backward;
  for (const StageMix& mix : mixes) {
    StageTime stage;
    for (const StageMix::Share& share : mix.shares) {
      const auto kind = static_cast<std::size_t>(share.kind);
      add_layers(stage, times[kind], memories[kind], share.layers);
    }
    if (layout.pp > 1 && layout.schedule == PipelineSchedule::dualpipe) halve(stage);
    const double stages = mix.stages;
    all.all_forward += stages * stage.forward.stream();
    all.all_backward += stages * stage.backward_stream();
    const std::pair<Seconds, Seconds> passes = left(stage);
    const Seconds both = passes.first + passes.second;
    most_forward = std::max(most_forward, passes.first);
    most_backward = std::max(most_backward, passes.second);
    take_larger(all.most_elements, stage.elements);
    if (mix.first > 0) take_larger(all.most_later, stage.elements);
    all.most_tensors = std::max(all.most_tensors, stage.tensors);
    if (mix.first == 0) all.first = stage;
    const bool inner = mix.first + mix.stages > 1 && mix.first + 1 < layout.pp;
    if (inner) all.slowest_inner = std::max(all.slowest_inner, both);
    if (mix.first == 0 || both > slowest) {
      slowest = both;
      all.slowest = stage;
      all.slowest_stage = mix.first;
    }
  }
  all.uneven = most_forward + most_backward - slowest;
  all.tied_elements = tied_elements_of(model, layout, mixes);
  return all;
}

bool hides_experts(const JobSpec& job, const Layout& layout) {
  return job.expert_overlap || is_dualpipe(layout.schedule);
}

StageHop stage_hop(const ModelSpec& model, const JobSpec& job, const ClusterSpec& cluster,
                   const Layout& layout, const GroupShape& group) {
  const std::int64_t tokens = layout.micro_batch_size * ceil_div(job.sequence_length, layout.cp);
  const std::int64_t spread = layout.sequence_parallel ? ceil_div(tokens, layout.tp) : tokens;
  const Bytes bytes(spread * model.hidden_size * (job.precision == DType::fp32 ? 4 : 2));
  return {bytes.value(), collective_time(cluster, CollectiveKind::send_recv, bytes, group)};
}

StageTimes stage_times(const ModelSpec& model, const JobSpec& job, const ClusterSpec& cluster,
                       const Layout& layout, std::span<const LayerTime> times,
                       std::span<const LayerMemory> memories, std::span<const StageLayers> stages) {
  StageTimes all =
      stage_sums(model, layout, times, memories, stage_mixes(stages), hides_experts(job, layout));
  if (layout.pp > 1) {
    const StageHop hop =
        stage_hop(model, job, cluster, layout, group_shape(cluster, layout, GroupKind::pp));
    all.hop_bytes = hop.bytes;
    all.hop = hop.time;
  }
  return all;
}

}  // namespace shardwise
