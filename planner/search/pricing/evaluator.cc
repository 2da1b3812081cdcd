#include "planner/search/pricing/evaluator.h"

#include <algorithm>
#include <memory>

#include "planner/cost/layer/layer_gradients.h"
#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pass_units.h"
#include "planner/schedule/held_passes.h"
#include "planner/search/pricing/streams_floor.h"
#include "planner/search/pricing/time_floor.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/schedule_facts.h"

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

/// Memory of a layer depends neither on activation offload, which moves what the layer keeps, nor
/// on the dtype of gradients, which is the buffer's.
bool shares_memory(LayerChoice a, const LayerChoice& b) {
  a.fp32_gradients = b.fp32_gradients;
  a.offload_activations = b.offload_activations;
  return a == b;
}
bool shares_time(LayerChoice a, const LayerChoice& b) {
  a.offload_activations = b.offload_activations;
  return a == b;
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
      memory_rules_(with_hosts(memory_rules_on(cluster.gpu, model_, job_, engine), cluster)),
      time_rules_(time_rules(job, engine, cluster)),
      sums_microbatches_(kernels_of(job, engine) == Kernels::planned),
      memories_(model, memory_rules_),
      memory_(memory ? std::move(memory) : std::make_shared<SearchMemory>()),
      tables_(memory_->borrow(cluster)),
      world_(shape_of_all(cluster)) {}

PipelineStages& Evaluator::stages_of(const Layout& layout, std::int64_t num_microbatches) {
  const auto [at, made] =
      stages_.try_emplace({layout.pp, layout.vpp, layout.schedule, layout.first_stage_layers,
                           layout.last_stage_layers, num_microbatches});
  if (made) {
    at->second = pipeline_stages(model_, layout, num_microbatches);
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
    num_microbatches_ = stretch.num_microbatches;
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
        PipelineStages& stages = stages_of(layout, stretch.num_microbatches);
        if (const std::size_t first = first_of(c, shares_memory); first != with_memory) {
          with_memory = first;
          set(layout, item.layers[first]);
          memories_of(layers[first], layout);
          with_memory_ = layout;
          memory_started_ = false;
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

Seconds Evaluator::floor_of_all(const WorkItem::Stretch& stretch, const PipelineStages& stages,
                                Layers& layers, const Layout& layout) {
  // Whatever states are chosen.
  const auto floor_of = [&](std::int64_t microbatches_a_sum) {
    return time_floor(layer_times_of(layers, places_.front().front(), layout, microbatches_a_sum),
                      stages.layers, time_rules_, layout, stretch.num_microbatches);
  };
  const Seconds floor = floor_of(1);
  return sums_microbatches_ ? std::min(floor, floor_of(stretch.num_microbatches)) : floor;
}

Seconds Evaluator::stream_floor_of_all(const WorkItem::Stretch& stretch,
                                       const PipelineStages& stages, Layers& layers,
                                       const Layout& layout) {
  if (sums_microbatches_) return Seconds(0);
  Seconds least(std::numeric_limits<double>::infinity());
  std::int32_t known = -1;  // places come in runs
  for (const std::vector<Place>& of_mesh : places_) {
    for (const Place& place : of_mesh) {
      if (place.layer_place == known) continue;
      known = place.layer_place;
      Layout there = layout;
      there.order = place.order->order;
      least = std::min(least, stream_floor(layer_times_of(layers, place, there, 1), stages.layers,
                                           time_rules_, there, stretch.num_microbatches));
    }
  }
  return least;
}

void Evaluator::start_memory(PipelineStages& stages, const std::vector<LayerMemory>& memories) {
  if (memory_started_) return;
  memory_started_ = true;
  if (stages.held.empty()) memories_.prepare(stages, with_memory_, num_microbatches_);
  memories_.start(stages, memories, with_memory_);
}

void Evaluator::price(const WorkItem::Stretch& stretch, PipelineStages& stages,
                      const std::vector<LayerMemory>& memories, Layers& layers, Layout layout,
                      LayoutVisitor& visitor) {
  const auto move_to = [&](const WorkItem::PlacedMesh& mesh) {
    layout.dp_shard = mesh.mesh->dp_shard;
    layout.dp_replicate = mesh.mesh->dp_replicate;
  };
  move_to(stretch.meshes.front());
  layout.order = places_.front().front().order->order;
  const Seconds floor = floor_of_all(stretch, stages, layers, layout);
  using Asks = LayoutVisitor::Asks;
  const Asks asks = visitor.asks();
  const bool sees_all = visitor.sees_all();
  const bool limits = !sees_all && visitor.limit() < kTooSlow;
  if (limits || asks == Asks::floors) {
    const Seconds least = std::max(floor, stream_floor_of_all(stretch, stages, layers, layout));
    if (asks == Asks::floors) visitor.floor(least);
    if (asks == Asks::floors || visitor.limit() < least * kLessRounding) {
      index_ += stretch.leaves();
      return;
    }
  }
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
      Seconds limit = visitor.limit();
      std::optional<MemoryPrice> memory;
      // False where nobody asks how long they take.
      const auto find_memory = [&] {
        memory = memories_.price(layout, m, s);
        limit = std::min(limit, visitor.memory(layout, *memory, floor, orders));
        return limit >= floor;
      };
      const auto fits = sees_all ? KnownFits::Fits::unknown : visitor.known_fit(first);
      if (fits == KnownFits::Fits::no) continue;
      if (fits == KnownFits::Fits::unknown) {
        start_memory(stages, memories);
        const bool bounded = limits || (!sees_all && memories_.is_dear(layout));
        if (bounded && !visitor.may_matter(memories_.least(layout, m, s), first, orders)) continue;
        // Where times are limited their bounds are cheaper.
        if (!limits && !find_memory()) continue;
      }
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
        if (asks == Asks::chains) {
          if (least_time(of) > limit) continue;
        } else if ((asks == Asks::times || limits) && is_too_slow(limit, of)) {
          continue;
        }
        if (!memory && fits == KnownFits::Fits::unknown && !find_memory()) break;
        if (asks != Asks::times) {
          const Seconds least = asks == Asks::bounds   ? least_time(of)
                                : asks == Asks::chains ? chain_bound(of)
                                                       : close_bound(of);
          visitor.bound(layout, memory.value_or(MemoryPrice()), std::max(floor, least), first + o);
          continue;
        }
        const Seconds time = time_within(limit, of);
        if (time < kTooSlow && time <= limit) visitor.time(layout, *memory, time, first + o);
      }
    }
  }
}

}  // namespace shardwise
