#include "planner/search/evaluator.h"

#include <algorithm>

#include "planner/cost/runtime_memory.h"
#include "planner/search/time_floor.h"

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

bool alike(const StageLayers& a, const StageLayers& b) {
  return a.runs == b.runs && a.copies_embedding == b.copies_embedding;
}

/// Of stages that hold the same layers, the one that holds the activations of most micro-batches is
/// the fullest. The first stage is apart: it sends no gradient on.
std::vector<std::int32_t> fullest_stages(const std::vector<StageLayers>& stages,
                                         const Layout& layout, std::int64_t num_microbatches) {
  std::vector<std::int32_t> fullest;
  const auto held = [&](std::int32_t stage) {
    return micro_batches_in_flight(layout, stage, num_microbatches).held;
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    const auto same = std::ranges::find_if(fullest, [&](std::int32_t other) {
      return other > 0 && stage > 0 && alike(stages[static_cast<std::size_t>(other)], stages[s]);
    });
    if (same == fullest.end()) {
      fullest.push_back(stage);
    } else if (held(stage) > held(*same)) {
      *same = stage;
    }
  }
  return fullest;
}

GroupShape shape_of_all(const ClusterSpec& cluster) {
  Layout all;
  all.dp_shard = static_cast<std::int32_t>(cluster.gpus);
  return group_shape(cluster, all, GroupKind::world);
}

}  // namespace

Evaluator::Evaluator(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                     const EngineProfile& engine)
    : model_(model),
      cluster_(cluster),
      job_(job),
      engine_(engine),
      memory_rules_(memory_rules(job, engine, runtime_memory(engine, cluster.gpu))),
      time_rules_(time_rules(job, engine, cluster)),
      memories_(model, memory_rules_),
      tables_(cluster),
      world_(shape_of_all(cluster)) {}

const PipelineStages& Evaluator::stages_of(const Layout& layout, std::int64_t num_microbatches) {
  const auto [at, made] =
      stages_.try_emplace({layout.pp, layout.vpp, layout.schedule, layout.first_stage_layers,
                           layout.last_stage_layers, num_microbatches});
  if (made) {
    at->second.layers = assign_stages(model_, layout);
    at->second.mixes = stage_mixes(at->second.layers);
    at->second.fullest = fullest_stages(at->second.layers, layout, num_microbatches);
    memories_.number_states(at->second);
  }
  return at->second;
}

void Evaluator::place_meshes(const WorkItem& item, const WorkItem::Stretch& stretch) {
  places_.clear();
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
          tables_,
          {shapes.dp_shard_cp, shapes.dp_replicate, shapes.edp_shard, shapes.tp, shapes.pp, world_},
          {model_.num_experts > 0, job_.reduce_scatter_with_fp32_accumulation});
      places.push_back(place);
    }
  }
}

void Evaluator::run(const WorkItem& item, LayoutVisitor& visitor) {
  layer_shapes_.clear();
  hop_shapes_.clear();
  stage_shapes_.clear();
  // Choices that share their layers come one after the other.
  std::vector<Layers> layers(item.layers.size());
  Layout layout = item.base;
  for (std::size_t c = 0; c < item.layers.size(); ++c) {
    if (c > 0 && shares_memory(item.layers[c], item.layers[c - 1])) continue;
    set(layout, item.layers[c]);
    layers[c].memories = layer_memories(model_, job_, engine_, layout);
  }

  index_ = 0;
  for (const WorkItem::Stretch& stretch : item.stretches) {
    layout.pp = stretch.pp;
    if (stretch.meshes.empty()) continue;
    place_meshes(item, stretch);
    memories_.start(stretch);
    for (const PipelineChoice& pipeline : stretch.pipelines) {
      set(layout, pipeline);
      const PipelineStages& stages = stages_of(layout, stretch.num_microbatches);
      std::size_t with_memory = 0;
      std::size_t with_time = 0;
      for (std::size_t c = 0; c < item.layers.size(); ++c) {
        set(layout, item.layers[c]);
        if (c == 0 || !shares_memory(item.layers[c], item.layers[c - 1])) {
          with_memory = c;
          memories_.start(stages, layers[c].memories, layout);
        }
        if (c == 0 || !shares_time(item.layers[c], item.layers[c - 1])) {
          with_time = c;
          stage_times_.assign(stage_shapes_.size(), std::nullopt);
        }
        price(stretch, stages, layers[with_memory].memories, layers[with_time], layout, visitor);
      }
    }
  }
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
  const Seconds floor = time_floor(layer_times_of(layers, any, layout), stages.mixes, time_rules_,
                                   layout, stretch.num_microbatches);
  for (std::size_t m = 0; m < stretch.meshes.size(); ++m) {
    const auto orders = static_cast<std::int64_t>(places_[m].size());
    move_to(stretch.meshes[m]);
    for (std::size_t s = 0; s < stretch.meshes[m].states.size(); ++s) {
      set(layout, stretch.meshes[m].states[s]);
      const MemoryPrice memory = memories_.price(layout, m, s);
      const Seconds limit = visitor.memory(layout, memory, floor, orders);
      if (limit < floor) {  // nobody asks how long they take
        index_ += orders;
        continue;
      }
      for (const Place& place : places_[m]) {
        layout.order = place.order->order;
        const StageTimes& times = times_of(memories, layers, place, layout, stages);
        const LeafContext context = {&time_rules_, &layout, &place.groups,
                                     stretch.num_microbatches};
        const Seconds time = step_time(times, context).total();
        if (time <= limit) visitor.time(layout, memory, time, index_);
        ++index_;
      }
    }
  }
}

const std::vector<LayerTime>& Evaluator::layer_times_of(Layers& layers, const Place& place,
                                                        const Layout& layout) {
  if (layers.times.size() < layer_shapes_.size()) layers.times.resize(layer_shapes_.size());
  std::vector<LayerTime>& times = layers.times[static_cast<std::size_t>(place.layer_place)];
  if (times.empty()) times = layer_times(model_, job_, engine_, cluster_, layout);
  return times;
}

const StageTimes& Evaluator::times_of(const std::vector<LayerMemory>& memories, Layers& layers,
                                      const Place& place, const Layout& layout,
                                      const PipelineStages& stages) {
  std::optional<StageTimes>& made = stage_times_[static_cast<std::size_t>(place.stage_place)];
  if (!made) {
    const std::vector<LayerTime>& times = layer_times_of(layers, place, layout);
    made = stage_sums(model_, layout, times, memories, stages.mixes, hides_experts(job_, layout));
    if (layout.pp > 1) {
      const StageHop hop = stage_hop(model_, job_, cluster_, layout, place.order->shapes.pp);
      made->hop_bytes = hop.bytes;
      made->hop = hop.time;
    }
  }
  return *made;
}

}  // namespace shardwise
