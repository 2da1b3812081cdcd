#include "planner/search/evaluator.h"

#include <algorithm>
#include <memory>

#include "planner/cost/arena_buffers.h"
#include "planner/cost/held_passes.h"
#include "planner/cost/layer_gradients.h"
#include "planner/cost/overlap_loss.h"
#include "planner/cost/pass_units.h"
#include "planner/search/streams_floor.h"
#include "planner/search/time_floor.h"
#include "planner/spec/schedule_facts.h"

namespace shardwise {
namespace {

/// The number of `value` among `known`, which it joins when it is new.
template <class T>
std::int32_t number_of(std::vector<T>& known, const T& value) {
  const auto at = std::ranges::find(known, value);
  const auto number = static_cast<std::int32_t>(at - known.begin());
  if (at == known.end()) known.push_back(value);
  return number;
}

/// Offloading moves what a layer keeps, the dtype of gradients is the buffer's.
bool shares_memory(LayerChoice a, const LayerChoice& b) {
  a.fp32_gradients = b.fp32_gradients;
  a.offload_activations = b.offload_activations;
  return a == b;
}
bool shares_time(LayerChoice a, const LayerChoice& b) {
  a.offload_activations = b.offload_activations;
  return a == b;
}

/// Whether a sweep leaves the end of every slot: those of a loop are its last.
bool has_path(const PipelineTimes& pipeline) {
  return pipeline.slots->stages > 1 && pipeline.slots->loops.empty();
}

GroupShape shape_of_all(const ClusterSpec& cluster) {
  Layout all;
  all.dp_shard = static_cast<std::int32_t>(cluster.gpus);
  return group_shape(cluster, all, GroupKind::world);
}

}  // namespace

Evaluator::Evaluator(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                     const EngineProfile& engine, std::shared_ptr<SearchMemory> memory)
    : model_(model),
      cluster_(cluster),
      job_(job),
      engine_(engine),
      memory_rules_(memory_rules_on(cluster.gpu, model_, job_, engine)),
      time_rules_(time_rules(job, engine, cluster)),
      sums_microbatches_(kernels_of(job, engine) == Kernels::planned),
      memories_(model, memory_rules_),
      memory_(memory ? std::move(memory) : std::make_shared<SearchMemory>()),
      tables_(memory_->borrow(cluster)),
      world_(shape_of_all(cluster)) {}

const PipelineStages& Evaluator::stages_of(const Layout& layout, std::int64_t num_microbatches) {
  const auto [at, made] =
      stages_.try_emplace({layout.pp, layout.vpp, layout.schedule, layout.first_stage_layers,
                           layout.last_stage_layers, num_microbatches});
  if (made) {
    at->second = pipeline_stages(model_, layout, num_microbatches);
    memories_.prepare(at->second, layout, num_microbatches);
    at->second.schedule = memory_->schedule(layout, num_microbatches, plans_buffers(engine_));
    at->second.paths = at->second.schedule->paths(at->second.layers, model_.kinds.size());
  }
  return at->second;
}

void Evaluator::place_meshes(const WorkItem& item, const WorkItem::Stretch& stretch) {
  places_.clear();
  states_.clear();
  leaves_ = 0;
  Layout layout = item.base;
  layout.pp = stretch.pp;
  for (const WorkItem::PlacedMesh& mesh : stretch.meshes) {
    layout.dp_shard = mesh.mesh->dp_shard;
    layout.dp_replicate = mesh.mesh->dp_replicate;
    std::vector<Place>& places = places_.emplace_back();
    for (const PlacedOrder& order : mesh.mesh->orders) {
      layout.order = order.order;
      Place place;
      place.order = &order;
      place.layer_place = number_of(
          layer_shapes_, {order.shapes.tp, order.shapes.cp, order.shapes.ep, order.shapes.etp});
      place.stage_place =
          number_of(stage_shapes_, {place.layer_place, number_of(hop_shapes_, order.shapes.pp)});
      const GroupShapes& shapes = order.shapes;
      place.groups = data_parallel_tables(
          tables_->tables,
          {shapes.dp_shard_cp, shapes.dp_replicate, shapes.edp_shard, shapes.reshard, shapes.tp,
           shapes.pp, world_},
          {model_.num_experts > 0, job_.reduce_scatter_with_fp32_accumulation});
      places.push_back(place);
    }
    leaves_ += mesh.states.size() * places.size();
  }
}

void Evaluator::run(const WorkItem& item, LayoutVisitor& visitor, std::stop_token stop) {
  stop_ = std::move(stop);
  layer_shapes_.clear();
  hop_shapes_.clear();
  stage_shapes_.clear();
  // Choices that share their layers come one after the other; the first of them stands for all.
  std::vector<Layers> layers(item.layers.size());
  const auto first_of = [&](std::size_t c, auto shares) {
    while (c > 0 && shares(item.layers[c], item.layers[c - 1])) --c;
    return c;
  };
  index_ = 0;
  for (const WorkItem::Stretch& stretch : item.stretches) {
    const std::int64_t leaves = stretch.leaves();
    const std::int64_t end =
        index_ + leaves * static_cast<std::int64_t>(stretch.pipelines.size() * layers.size());
    if (end == index_ || !visitor.wants(index_, end)) {
      index_ = end;
      continue;
    }
    Layout layout = item.base;
    layout.pp = stretch.pp;
    place_meshes(item, stretch);
    memories_.start(stretch);
    for (const PipelineChoice& pipeline : stretch.pipelines) {
      set(layout, pipeline);
      std::size_t with_memory = layers.size();  // none yet
      std::size_t with_time = layers.size();
      for (std::size_t c = 0; c < layers.size(); ++c) {
        if (stop_.stop_requested()) return;
        if (!visitor.wants(index_, index_ + leaves)) {
          index_ += leaves;
          continue;
        }
        const PipelineStages& stages = stages_of(layout, stretch.num_microbatches);
        if (const std::size_t first = first_of(c, shares_memory); first != with_memory) {
          with_memory = first;
          set(layout, item.layers[first]);
          memories_.start(stages, memories_of(layers[first], layout), layout);
        }
        if (const std::size_t first = first_of(c, shares_time); first != with_time) {
          with_time = first;
          timed_.clear();
        }
        set(layout, item.layers[c]);
        price(stretch, stages, layers[with_memory].memories, layers[with_time], layout, visitor);
      }
    }
  }
}

const std::vector<LayerMemory>& Evaluator::memories_of(Layers& layers, const Layout& layout) {
  if (layers.memories.empty()) {
    layers.memories = layer_memories(model_, job_, engine_, layout);
  }
  return layers.memories;
}

void Evaluator::price(const WorkItem::Stretch& stretch, const PipelineStages& stages,
                      const std::vector<LayerMemory>& memories, Layers& layers, Layout layout,
                      LayoutVisitor& visitor) {
  const auto move_to = [&](const WorkItem::PlacedMesh& mesh) {
    layout.dp_shard = mesh.mesh->dp_shard;
    layout.dp_replicate = mesh.mesh->dp_replicate;
  };
  const Place& any = places_.front().front();
  move_to(stretch.meshes.front());
  layout.order = any.order->order;
  // Whatever states are chosen.
  const auto floor_of = [&](std::int64_t microbatches_a_sum) {
    return time_floor(layer_times_of(layers, any, layout, microbatches_a_sum), stages.layers,
                      time_rules_, layout, stretch.num_microbatches);
  };
  Seconds floor = floor_of(1);
  if (sums_microbatches_) floor = std::min(floor, floor_of(stretch.num_microbatches));
  const bool bounds = visitor.asks_bounds();
  std::size_t leaf = 0;
  for (std::size_t m = 0; m < stretch.meshes.size(); ++m) {
    const auto orders = static_cast<std::int64_t>(places_[m].size());
    move_to(stretch.meshes[m]);
    for (std::size_t s = 0; s < stretch.meshes[m].states.size(); ++s) {
      if (stop_.stop_requested()) return;
      const std::int64_t first = index_;
      index_ += orders;
      leaf += places_[m].size();
      if (!visitor.wants(first, index_)) continue;
      set(layout, stretch.meshes[m].states[s]);
      const MemoryPrice memory = memories_.price(layout, m, s);
      const Seconds limit = visitor.memory(layout, memory, floor, orders);
      if (limit < floor) continue;  // nobody asks how long they take
      for (std::int64_t o = 0; o < orders; ++o) {
        if (stop_.stop_requested()) return;
        if (orders > 1 && !visitor.wants(first + o, first + o + 1)) continue;
        const auto at = static_cast<std::size_t>(o);
        const Place& place = places_[m][at];
        layout.order = place.order->order;
        const Leaf of = {
            stages,
            memories,
            layers,
            place,
            {&time_rules_, &layout, &place.groups, stretch.num_microbatches, &stop_},
            leaf - places_[m].size() + at,
            sums_microbatches_ ? microbatches_a_sum(job_, engine_, cluster_, layout) : 1};
        if (bounds) {
          visitor.bound(layout, memory, std::max(floor, least_time(of)), first + o);
          continue;
        }
        const Seconds time = time_within(limit, of);
        if (time < kTooSlow && time <= limit) visitor.time(layout, memory, time, first + o);
      }
    }
  }
}

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
  Timed& timed = timed_of(leaf);
  sum_up(timed, leaf);
  const Beside with = beside(timed, leaf);
  return (std::max(timed.floor + timed.straggler, with.carried) + with.updated) * kLessRounding;
}

Seconds Evaluator::time_within(Seconds limit, const Leaf& leaf) {
  // Between two parts that may take milliseconds.
  const auto too_slow = [&](Seconds least) {
    return least * kLessRounding > limit || stop_.stop_requested();
  };
  const LeafContext& context = leaf.context;
  const Layout& layout = *context.layout;
  Timed& timed = timed_of(leaf);
  if (too_slow(timed.floor)) return kTooSlow;
  sum_up(timed, leaf);
  const auto [states, carried, updated] = beside(timed, leaf);
  if (too_slow(std::max(timed.floor + timed.straggler, carried) + updated)) return kTooSlow;
  const bool copies = only_offloads(context);
  if (layout.pp > 1 && too_slow(std::max(known_floor(timed, leaf, copies), carried) + updated)) {
    return kTooSlow;
  }
  if (context.groups->any && reduces_by_unit(context) &&
      too_slow(moved_floor(timed, leaf) + updated)) {
    return kTooSlow;
  }
  if (!leaf.stages.slots) {
    leaf.stages.slots =
        leaf.stages.schedule->slots(layout, context.num_microbatches, plans_buffers(engine_));
    if (stop_.stop_requested()) return kTooSlow;
  }
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

void Evaluator::sum_up(Timed& timed, const Leaf& leaf) {
  if (timed.summed) return;
  timed.summed = true;
  const Layout& layout = *leaf.context.layout;
  timed.stages =
      stage_sums(layout, time_rules_, layer_times_of(leaf), leaf.memories, leaf.stages.mixes);
  timed.states = number_states(timed.stages, layout);
  timed.straggler = static_cast<double>(leaf.context.num_microbatches) *
                    timed.stages.slowest.compute() * time_rules_.slowest_gpu_excess;
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
