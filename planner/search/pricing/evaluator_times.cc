// What layouts of a WorkItem take: bounds on their times, and the times themselves.
#include <algorithm>
#include <utility>

#include "planner/cost/step/pass_units.h"
#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/streams_floor.h"
#include "planner/search/pricing/time_floor.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Whether a sweep leaves the end of every slot: those of a loop are its last.
bool has_path(const PipelineTimes& pipeline) {
  return pipeline.slots->stages > 1 && pipeline.slots->loops.empty();
}

}  // namespace

Evaluator::Beside Evaluator::beside(const Timed& timed, const Leaf& leaf) {
  const Layout& layout = *leaf.context.layout;
  std::optional<StateTimes>& states = states_[timed.states].times[leaf.number];
  if (!states) states = state_times(timed.stages, leaf.context);
  // Under DualPipe a stage runs each of its chunks for half of the micro-batches.
  const bool carries = layout.offload_activations && !copies_model(layout);
  return {&*states, carries ? offloaded(timed.stages, leaf.context) : Seconds(0),
          states->optimizer.update + states->optimizer.finalize};
}

Seconds Evaluator::least_time(const Leaf& leaf) {
  const Timed& timed = sum_up(timed_of(leaf), leaf);
  const Beside with = beside(timed, leaf);
  return (std::max(timed.floor + timed.straggler, with.carried) + with.updated) * kLessRounding;
}

Seconds Evaluator::close_bound(const Leaf& leaf) {
  Timed& timed = sum_up(timed_of(leaf), leaf);
  const Beside with = beside(timed, leaf);
  Seconds passes = std::max(timed.floor + timed.straggler, with.carried);
  const LeafContext& context = leaf.context;
  const bool copies = only_offloads(context);
  if (context.layout->pp > 1) passes = std::max(passes, known_floor(timed, leaf, copies));
  const bool moves = context.groups->any && reduces_by_unit(context);
  if (moves) passes = std::max(passes, moved_floor(timed, leaf));
  return (passes + with.updated) * kLessRounding;
}

Seconds Evaluator::chain_bound(const Leaf& leaf) {
  Seconds least = least_time(leaf);
  Timed& timed = timed_of(leaf);
  const Beside with = beside(timed, leaf);
  const LeafContext& context = leaf.context;
  // What collectives take from compute depends on when they meet, so it is left out. Gathers of
  // experts take turns with others in the step-time model alone.
  if (context.groups->any && reduces_by_unit(context) && model_.num_experts == 0) {
    path_times_of(timed, leaf);
    const Seconds moved =
        streams_floor(timed.stages.pipeline.layers, leaf.stages.layers, context, PassLosses());
    least = std::max(least, (moved + with.updated) * kLessRounding);
  }
  if (context.layout->pp == 1 || !make_slots(leaf)) return least;
  const PipelineRun& run = run_of(timed, leaf);
  return std::max(least, (std::max(run.length, with.carried) + with.updated) * kLessRounding);
}

bool Evaluator::make_slots(const Leaf& leaf) {
  if (leaf.stages.slots) return true;
  leaf.stages.slots = leaf.stages.schedule->slots(
      *leaf.context.layout, leaf.context.num_microbatches, plans_buffers(engine_));
  return !stop_.stop_requested();
}

bool Evaluator::is_above(Seconds limit, Seconds least) const {
  return least * kLessRounding > limit || stop_.stop_requested();
}

bool Evaluator::is_too_slow(Seconds limit, const Leaf& leaf) {
  const LeafContext& context = leaf.context;
  Timed& timed = timed_of(leaf);
  if (is_above(limit, timed.floor)) return true;
  sum_up(timed, leaf);
  const auto [states, carried, updated] = beside(timed, leaf);
  if (is_above(limit, std::max(timed.floor + timed.straggler, carried) + updated)) return true;
  if (context.layout->pp > 1) {
    const Seconds known = known_floor(timed, leaf, only_offloads(context));
    if (is_above(limit, std::max(known, carried) + updated)) return true;
  }
  return context.groups->any && reduces_by_unit(context) &&
         is_above(limit, moved_floor(timed, leaf) + updated);
}

Seconds Evaluator::time_within(Seconds limit, const Leaf& leaf) {
  // Between two parts that may take milliseconds.
  const auto too_slow = [&](Seconds least) { return is_above(limit, least); };
  const LeafContext& context = leaf.context;
  Timed& timed = timed_of(leaf);
  const auto [states, carried, updated] = beside(timed, leaf);
  const bool copies = only_offloads(context);
  if (!make_slots(leaf)) return kTooSlow;
  const PipelineRun& run = run_of(timed, leaf);
  if (too_slow(std::max(run.length, carried) + updated)) return kTooSlow;
  const PipelineStep& step = step_of(timed, context);
  const Seconds least = least_step_time(step, *states);
  if (too_slow(least)) return kTooSlow;
  const StreamedPasses* streamed = copies ? &streamed_of(timed, leaf, step) : nullptr;
  if (copies && too_slow(least + std::max(Seconds(0), streamed->end - step.issued.run.length))) {
    return kTooSlow;
  }
  const Seconds time = step_time(timed.stages, context, step, *states, streamed).total();
  return stop_.stop_requested() ? kTooSlow : time;
}

const std::vector<LayerTime>& Evaluator::layer_times_of(Layers& layers, const Place& place,
                                                        const Layout& layout,
                                                        std::int64_t microbatches_a_sum) {
  std::vector<LayerTime>& times = layers.times[{place.layer_place, microbatches_a_sum}];
  if (times.empty()) {
    times = layer_times(model_, job_, engine_, cluster_, layout, microbatches_a_sum);
  }
  return times;
}

Evaluator::Timed& Evaluator::timed_of(const Leaf& leaf) {
  const auto [made, is_new] = timed_.try_emplace({leaf.place.stage_place, leaf.microbatches_a_sum});
  if (is_new) {
    made->second.floor = stream_floor(layer_times_of(leaf), leaf.stages.layers, time_rules_,
                                      *leaf.context.layout, leaf.context.num_microbatches);
  }
  return made->second;
}

Evaluator::Timed& Evaluator::sum_up(Timed& timed, const Leaf& leaf) {
  if (timed.summed) return timed;
  timed.summed = true;
  const Layout& layout = *leaf.context.layout;
  timed.stages =
      stage_sums(layout, time_rules_, layer_times_of(leaf), leaf.memories, leaf.stages.mixes);
  timed.states = number_states(timed.stages, layout);
  timed.straggler = static_cast<double>(leaf.context.num_microbatches) *
                    timed.stages.slowest.compute() * time_rules_.slowest_gpu_excess;
  return timed;
}

const PathTimes& Evaluator::path_times_of(Timed& timed, const Leaf& leaf) {
  if (timed.paths) return *timed.paths;
  const Layout& layout = *leaf.context.layout;
  if (layout.pp > 1) {
    const StageHop hop = stage_hop(model_, job_, cluster_, layout, leaf.place.order->shapes.pp);
    timed.stages.hop_bytes = hop.bytes;
    timed.stages.hop = hop.time;
    timed.stages.hop_traffic = hop.traffic;
  }
  std::vector<LayerPace>& layers = timed.stages.pipeline.layers;
  layers =
      layer_paces(layer_times_of(leaf), leaf.memories, time_rules_, layout, leaf.stages.layers);
  return timed.paths.emplace(layers, timed.stages.hop, cluster_.host_link);
}

Seconds Evaluator::known_floor(Timed& timed, const Leaf& leaf, bool copies) {
  const PathTimes& times = path_times_of(timed, leaf);
  KnownFloor& known = timed.known[copies ? 1 : 0];
  const KnownPaths& paths = leaf.stages.paths;
  if (known.added != paths.added()) {
    known = {paths.floor(copies ? times.all() : times.without_copies()), paths.added()};
  }
  return known.length;
}

Seconds Evaluator::moved_floor(Timed& timed, const Leaf& leaf) {
  path_times_of(timed, leaf);
  return streams_floor(timed.stages.pipeline.layers, leaf.stages.layers, leaf.context,
                       pass_losses(stage_kernels(timed.stages).slowest, leaf.context));
}

void Evaluator::learn(const Leaf& leaf, PathCounts path) {
  leaf.stages.schedule->add(leaf.stages.layers, model_.kinds.size(), path);
  leaf.stages.paths.add(std::move(path));
}

const PipelineRun& Evaluator::run_of(Timed& timed, const Leaf& leaf) {
  PipelineTimes& pipeline = timed.stages.pipeline;
  if (pipeline.slots) return pipeline.run;
  const PathTimes& times = path_times_of(timed, leaf);
  const PipelineStages& stages = leaf.stages;
  pipeline = pipeline_times(stages.slots, stages.layers, std::move(pipeline.layers));
  sweep(pipeline, timed.stages.hop, ends_);
  if (has_path(pipeline) && stages.paths.is_news(pipeline.run.length, times.without_copies())) {
    learn(leaf, longest_path(pipeline, times, ends_.end));
  }
  return pipeline.run;
}

const PipelineStep& Evaluator::step_of(Timed& timed, const LeafContext& context) {
  if (!timed.step) timed.step = pipeline_step(timed.stages, context);
  return *timed.step;
}

const StreamedPasses& Evaluator::streamed_of(Timed& timed, const Leaf& leaf,
                                             const PipelineStep& step) {
  if (timed.streamed) return *timed.streamed;
  timed.streamed = streamed_passes(timed.stages, leaf.context, step.kernels, ends_);
  if (!has_path(timed.stages.pipeline) || stop_.stop_requested()) return *timed.streamed;
  const PathTimes& times = path_times_of(timed, leaf);
  PathCounts path = longest_path(timed.stages.pipeline, times, ends_.end, true);
  if (leaf.stages.paths.is_news(length_of(path, times.all()), times.all())) {
    learn(leaf, std::move(path));
  }
  return *timed.streamed;
}

std::size_t Evaluator::number_states(const StageTimes& stages, const Layout& layout) {
  const auto known = std::ranges::find_if(states_, [&](const MovedStates& each) {
    return each.sequence_parallel == layout.sequence_parallel &&
           each.fp32_gradients == layout.fp32_gradients && same_elements(each.stages, stages);
  });
  if (known != states_.end()) return static_cast<std::size_t>(known - states_.begin());
  states_.push_back({stages, layout.sequence_parallel, layout.fp32_gradients, {}});
  states_.back().times.resize(leaves_);
  return states_.size() - 1;
}

}  // namespace shardwise
