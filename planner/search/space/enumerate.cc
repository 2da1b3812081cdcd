#include "planner/search/space/enumerate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// Not a rule of layouts but of counting: distinct_orders dropped it.
const LayoutRule kSameLinks = {
    "same_links",
    "an order that puts every group on the same links as another is the same",
    0,
    true,
    nullptr,
    nullptr};

std::int64_t count(const auto& values) { return static_cast<std::int64_t>(values.size()); }

bool holds(const std::vector<std::int32_t>& values, std::int64_t value) {
  return std::ranges::find(values, value) != values.end();
}

/// Multiplies the choices made so far by the values of one more field.
template <class Choice, class Value, class T>
void times(std::vector<Choice>& choices, const std::vector<Value>& values, T Choice::*field) {
  std::vector<Choice> product;
  for (const Choice& choice : choices) {
    for (const Value value : values) {
      product.push_back(choice);
      product.back().*field = value;
    }
  }
  choices = std::move(product);
}

}  // namespace

std::int64_t SpaceCounts::pruned_total() const {
  return std::transform_reduce(pruned.begin(), pruned.end(), std::int64_t{0}, std::plus<>(),
                               [](const RuleCount& each) { return each.layouts; });
}

SpaceCounts& SpaceCounts::operator+=(const SpaceCounts& other) {
  enumerated += other.enumerated;
  legal += other.legal;
  for (std::size_t i = 0; i < pruned.size(); ++i) pruned[i].layouts += other.pruned[i].layouts;
  return *this;
}

std::int64_t WorkItem::Stretch::leaves() const {
  std::int64_t leaves = 0;
  for (const PlacedMesh& each : meshes) leaves += count(each.states) * count(each.mesh->orders);
  return leaves;
}

std::int64_t WorkItem::layouts() const {
  std::int64_t all = 0;
  for (const Stretch& each : stretches) {
    all += count(each.pipelines) * count(layers) * each.leaves();
  }
  return all;
}

void set(Layout& layout, const PipelineChoice& choice) {
  layout.vpp = choice.vpp;
  layout.schedule = choice.schedule;
  layout.first_stage_layers = choice.first_stage_layers;
  layout.last_stage_layers = choice.last_stage_layers;
}

void set(Layout& layout, const LayerChoice& choice) {
  layout.sequence_parallel = choice.sequence_parallel;
  layout.offload_activations = choice.offload_activations;
  layout.fp32_gradients = choice.fp32_gradients;
  layout.recompute = choice.recompute;
  layout.recompute_interval = choice.recompute_interval;
  layout.cp_kind = choice.cp_kind;
}

void set(Layout& layout, const StateChoice& choice) {
  layout.zero_stage = choice.zero_stage;
  layout.outer_shards_optimizer = choice.outer_shards_optimizer;
  layout.reshard_after_forward = choice.reshard_after_forward;
  layout.reduce_every_microbatch = choice.reduce_every_microbatch;
  layout.offload_optimizer = choice.offload_optimizer;
  layout.store_param_remainders = choice.store_param_remainders;
  layout.double_buffer = choice.double_buffer;
  layout.overlap_grad_reduce = choice.overlap_grad_reduce;
  layout.overlap_param_gather = choice.overlap_param_gather;
  layout.ddp_bucket_size = choice.ddp_bucket_size;
  layout.ddp_pad_buckets_for_high_nccl_busbw = choice.ddp_pad_buckets_for_high_nccl_busbw;
}

Enumerator::Enumerator(const LayoutQuestion& question, const SearchSpace& space)
    : question_(question), space_(space) {
  pipelines_.push_back({});
  times(pipelines_, space.vpp, &PipelineChoice::vpp);
  times(pipelines_, space.schedule, &PipelineChoice::schedule);
  times(pipelines_, space.first_stage_layers, &PipelineChoice::first_stage_layers);
  times(pipelines_, space.last_stage_layers, &PipelineChoice::last_stage_layers);
  layers_.push_back({});
  times(layers_, space.sequence_parallel, &LayerChoice::sequence_parallel);
  times(layers_, space.recompute, &LayerChoice::recompute);
  times(layers_, space.recompute_interval, &LayerChoice::recompute_interval);
  times(layers_, space.cp_kind, &LayerChoice::cp_kind);
  times(layers_, space.fp32_gradients, &LayerChoice::fp32_gradients);
  times(layers_, space.offload_activations, &LayerChoice::offload_activations);
  states_.push_back({});
  times(states_, space.zero_stage, &StateChoice::zero_stage);
  times(states_, space.outer_shards_optimizer, &StateChoice::outer_shards_optimizer);
  times(states_, space.reshard_after_forward, &StateChoice::reshard_after_forward);
  times(states_, space.reduce_every_microbatch, &StateChoice::reduce_every_microbatch);
  times(states_, space.offload_optimizer, &StateChoice::offload_optimizer);
  times(states_, space.store_param_remainders, &StateChoice::store_param_remainders);
  times(states_, space.double_buffer, &StateChoice::double_buffer);
  times(states_, space.overlap_grad_reduce, &StateChoice::overlap_grad_reduce);
  times(states_, space.overlap_param_gather, &StateChoice::overlap_param_gather);
  times(states_, space.ddp_bucket_size, &StateChoice::ddp_bucket_size);
  times(states_, space.ddp_pad_buckets_for_high_nccl_busbw,
        &StateChoice::ddp_pad_buckets_for_high_nccl_busbw);
  below_mesh_ = count(pipelines_) * count(layers_) * count(states_) * count(space.order);

  constexpr std::uint32_t kDegrees = kReadsTp | kReadsCp | kReadsEp | kReadsEtp;
  constexpr std::array<std::uint32_t, kLevels> kChosen = {
      kReadsTp,
      kReadsTp | kReadsCp,
      kDegrees,
      kDegrees | kReadsMicroBatch,
      kDegrees | kReadsMicroBatch | kReadsPp | kReadsDpTotal,
      kDegrees | kReadsMicroBatch | kReadsPp | kReadsDpTotal | kReadsDp,
      // The pipeline is chosen once for all meshes, layers once for all pipelines, states once for
      // all of these.
      kDegrees | kReadsMicroBatch | kReadsPp | kReadsDpTotal | kReadsVpp | kReadsSchedule |
          kReadsStageLayers,
      kDegrees | kReadsMicroBatch | kReadsSequenceParallel | kReadsOffloadActivations |
          kReadsRecompute | kReadsCpKind | kReadsGradients,
      kDegrees | kReadsMicroBatch | kReadsPp | kReadsDpTotal | kReadsDp | kReadsZeroStage |
          kReadsOuter | kReadsReshard | kReadsReduce | kReadsOffloadOptimizer | kReadsRemainders |
          kReadsDoubleBuffer | kReadsOverlap | kReadsBuckets,
  };
  std::array<std::vector<const LayoutRule*>, kLevels> levels;
  const auto add = [&](const LayoutRule& rule) {
    if (rule.reads == kReadsNothing) return;
    const auto level = std::ranges::find_if(
        kChosen, [&](std::uint32_t chosen) { return (rule.reads & ~kReadsJob & ~chosen) == 0; });
    SHARDWISE_CHECK(level != kChosen.end(), std::string(rule.id));
    levels[static_cast<std::size_t>(level - kChosen.begin())].push_back(&rule);
  };
  for (const LayoutRule& rule : layout_rules()) add(rule);
  for (const SearchRule& each : search_rules()) {
    if (std::ranges::find(space.rules, each.rule.id) != space.rules.end()) add(each.rule);
  }
  for (std::size_t level = 0; level < kLevels; ++level) {
    rules_.insert(rules_.end(), levels[level].begin(), levels[level].end());
    first_[level + 1] = rules_.size();
  }
  rules_.push_back(&kSameLinks);
}

SpaceCounts Enumerator::no_counts() const {
  SpaceCounts counts;
  for (const LayoutRule* rule : rules_) counts.pruned.push_back({rule, 0});
  return counts;
}

std::size_t Enumerator::broken(Level level, const Layout& layout) const {
  const std::size_t end = first_[std::size_t{level} + 1];
  for (std::size_t rule = first_[level]; rule < end; ++rule) {
    if (rules_[rule]->broken(question_, layout)) return rule;
  }
  return kUnbroken;
}

void Enumerator::drop(SpaceCounts& counts, std::size_t rule, std::int64_t layouts) {
  counts.pruned[rule].layouts += layouts;
}

std::vector<Enumerator::Split> Enumerator::splits(const Layout& layout) const {
  std::vector<Split> all;
  const std::int64_t inner = std::int64_t{layout.tp} * layout.cp;
  if (question_.cluster->gpus % inner != 0) return all;
  const std::int64_t rest = question_.cluster->gpus / inner;
  for (const std::int32_t pp : space_.pp) {
    if (rest % pp != 0) continue;
    for (const std::int32_t shard : space_.dp_shard) {
      if (rest / pp % shard != 0) continue;
      const std::int64_t replicate = rest / pp / shard;
      if (!holds(space_.dp_replicate, replicate)) continue;
      all.push_back({pp, shard, static_cast<std::int32_t>(replicate)});
    }
  }
  return all;
}

std::vector<DegreeGroup> Enumerator::degree_groups(SpaceCounts& counts) const {
  std::vector<DegreeGroup> groups;
  const std::int64_t experts = count(space_.ep) * count(space_.etp);
  const std::int64_t batches = count(space_.micro_batch_size);
  Layout layout;
  for (const std::int32_t tp : space_.tp) {
    layout.tp = tp;
    for (const std::int32_t cp : space_.cp) {
      layout.cp = cp;
      const std::int64_t below = batches * count(splits(layout)) * below_mesh_;
      if (below == 0) continue;
      counts.enumerated += experts * below;
      layout.ep = layout.etp = 1;
      std::size_t rule = broken(kTp, layout);
      if (rule == kUnbroken) rule = broken(kCp, layout);
      if (rule != kUnbroken) {
        drop(counts, rule, experts * below);
        continue;
      }
      for (const std::int32_t ep : space_.ep) {
        for (const std::int32_t etp : space_.etp) {
          layout.ep = ep;
          layout.etp = etp;
          const std::size_t wrong = broken(kExperts, layout);
          if (wrong != kUnbroken) {
            drop(counts, wrong, below);
          } else {
            groups.push_back({layout, {}});
          }
        }
      }
    }
  }
  return groups;
}

void Enumerator::place(DegreeGroup& group, ShapeCache& shapes) const {
  Layout layout = group.base;
  const bool experts = question_.model->num_experts > 0;
  // A space has one number of ranks to reshard to at most: where it was asked for.
  if (!space_.reshard_after_forward.empty()) {
    layout.reshard_after_forward = std::ranges::max(space_.reshard_after_forward);
  }
  for (const Split& split : splits(layout)) {
    layout.pp = split.pp;
    layout.dp_shard = split.dp_shard;
    layout.dp_replicate = split.dp_replicate;
    // A mesh that breaks a rule for every micro-batch size needs no orders.
    const bool possible = std::ranges::any_of(space_.micro_batch_size, [&](std::int32_t size) {
      layout.micro_batch_size = size;
      return broken(kBatch, layout) == kUnbroken && broken(kPp, layout) == kUnbroken &&
             broken(kMesh, layout) == kUnbroken;
    });
    if (!possible) continue;
    group.meshes.push_back({split.pp, split.dp_shard, split.dp_replicate,
                            distinct_orders(shapes, layout, experts, space_.order)});
  }
}

WorkItem Enumerator::work_item(const DegreeGroup& group, std::int32_t micro_batch_size,
                               SpaceCounts& counts) const {
  WorkItem item;
  item.base = group.base;
  item.base.micro_batch_size = micro_batch_size;
  Layout layout = item.base;
  const std::vector<Split> all = splits(layout);
  const std::size_t batch_rule = broken(kBatch, layout);
  if (batch_rule != kUnbroken) {
    drop(counts, batch_rule, count(all) * below_mesh_);
    return item;
  }

  std::vector<std::size_t> layer_rules;  // that dropped a choice
  for (const LayerChoice& choice : layers_) {
    set(layout, choice);
    const std::size_t rule = broken(kLayer, layout);
    rule == kUnbroken ? item.layers.push_back(choice) : layer_rules.push_back(rule);
  }
  layout = item.base;

  std::vector<std::size_t> pipeline_rules;
  const Mesh* mesh = group.meshes.data();
  for (const Split& split : all) {
    layout.pp = split.pp;
    layout.dp_shard = split.dp_shard;
    layout.dp_replicate = split.dp_replicate;
    std::size_t rule = broken(kPp, layout);
    if (rule == kUnbroken) rule = broken(kMesh, layout);
    const bool placed = mesh != group.meshes.data() + group.meshes.size() && mesh->pp == split.pp &&
                        mesh->dp_shard == split.dp_shard;
    if (placed) ++mesh;
    if (rule != kUnbroken) {
      drop(counts, rule, below_mesh_);
      continue;
    }
    SHARDWISE_CHECK(placed, "a mesh was not placed");

    if (item.stretches.empty() || item.stretches.back().pp != split.pp) {
      WorkItem::Stretch stretch;
      stretch.pp = split.pp;
      const std::int64_t each = layout.dp() * micro_batch_size;
      stretch.num_microbatches =
          std::max<std::int64_t>(1, question_.job->batch_for(layout.dp(), micro_batch_size) / each);
      pipeline_rules.clear();
      for (const PipelineChoice& choice : pipelines_) {
        Layout tried = layout;
        set(tried, choice);
        const std::size_t wrong = broken(kPipeline, tried);
        wrong == kUnbroken ? stretch.pipelines.push_back(choice) : pipeline_rules.push_back(wrong);
      }
      item.stretches.push_back(std::move(stretch));
    }
    WorkItem::Stretch& stretch = item.stretches.back();
    WorkItem::PlacedMesh here;
    here.mesh = mesh - 1;

    const std::int64_t orders = count(space_.order);
    const std::int64_t below_pipeline = count(layers_) * count(states_) * orders;
    for (const std::size_t wrong : pipeline_rules) drop(counts, wrong, below_pipeline);
    const std::int64_t pipelines = count(stretch.pipelines);
    for (const std::size_t wrong : layer_rules) {
      drop(counts, wrong, pipelines * count(states_) * orders);
    }
    const std::int64_t above_states = pipelines * count(item.layers);
    for (const StateChoice& choice : states_) {
      Layout tried = layout;
      set(tried, choice);
      const std::size_t wrong = broken(kStates, tried);
      if (wrong != kUnbroken) {
        drop(counts, wrong, above_states * orders);
      } else {
        here.states.push_back(choice);
      }
    }
    const std::int64_t above_orders = above_states * count(here.states);
    drop(counts, rules_.size() - 1, above_orders * (orders - count(here.mesh->orders)));
    counts.legal += above_orders * count(here.mesh->orders);
    if (!here.states.empty()) stretch.meshes.push_back(std::move(here));
  }
  return item;
}

}  // namespace shardwise
