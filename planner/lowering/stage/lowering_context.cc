#include "planner/lowering/stage/lowering_context.h"

#include <algorithm>
#include <utility>

#include "planner/cost/layer/token_table.h"
#include "planner/cost/step/data_parallel_moves.h"
#include "planner/cost/step/stage_times.h"
#include "planner/lowering/stage/layer_items.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// The layers of chunk `number` out of what its stage holds, whose first is `next` of the model.
ModelChunk chunk_of(const LoweringContext& c, const StageLayers& stage, std::int32_t number,
                    std::int32_t next) {
  const ModelSpec& model = c.plan->model;
  const Layout& layout = c.layout();
  ModelChunk chunk;
  chunk.number = number;
  for (const StageRun& run : stage.runs) {
    if (run.chunk != number / layout.pp) continue;
    const auto kind = static_cast<std::size_t>(run.kind);
    const bool full = layout.recompute == Recompute::full && is_block(model.kinds[kind].role);
    const bool some = c.times[kind].recompute.kernels > 0;
    for (std::int32_t i = 0; i < run.layers; ++i) {
      SHARDWISE_CHECK(model.layers[static_cast<std::size_t>(next)] == run.kind, model.name);
      StageLayer layer;
      layer.layer = next++;
      layer.kind = run.kind;
      layer.whole = full && i % layout.recompute_interval != 0;
      layer.recomputed = some && !layer.whole;
      chunk.layers.push_back(layer);
    }
  }
  return chunk;
}

void share_table(const LoweringContext& c, ModelChunk& chunk) {
  const auto memory = [&](const StageLayer& layer) -> const LayerMemory& {
    return c.memories[static_cast<std::size_t>(layer.kind)];
  };
  const bool tied = std::ranges::any_of(
      chunk.layers, [&](const StageLayer& layer) { return has_tied_table(memory(layer)); });
  for (StageLayer& layer : chunk.layers) {
    layer.tied_to_head = tied && memory(layer).role == LayerRole::embedding;
  }
}

/// The layers of every chunk, which take the model's in order.
void number_layers(LoweringContext& c) {
  const Layout& layout = c.layout();
  c.stage_chunks.resize(c.stages.size());
  std::int32_t next = 0;
  for (std::int32_t number = 0; number < c.chunks; ++number) {
    const auto stage = static_cast<std::size_t>(stage_of_chunk(layout, number));
    if (copies_model(layout) && number == layout.pp) next = 0;  // the other copy of the model
    ModelChunk chunk = chunk_of(c, c.stages[stage], number, next);
    share_table(c, chunk);
    next += static_cast<std::int32_t>(chunk.layers.size());
    c.stage_chunks[stage].push_back(std::move(chunk));
  }
  SHARDWISE_CHECK(next == static_cast<std::int32_t>(c.plan->model.layers.size()),
                  c.plan->model.name);
  for (std::size_t s = 0; s < c.stages.size(); ++s) {
    if (c.stages[s].copies_embedding) c.stage_chunks[s].back().layers.back().copies_table = true;
  }
}

}  // namespace

LoweringContext lowering_context(const Plan& plan, Granularity granularity, bool first_step,
                                 std::int64_t num_microbatches) {
  const Layout& layout = plan.layout;
  LoweringContext c;
  c.plan = &plan;
  c.first_step = first_step;
  c.num_microbatches = num_microbatches > 0
                           ? num_microbatches
                           : plan.job.microbatches(layout.dp(), layout.micro_batch_size);
  c.placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  c.shards = shard_ranks(layout, Placement::shard_inner);
  c.memory_rules = memory_rules_on(plan.cluster.gpu, plan.model, plan.job, plan.engine);
  c.own_kernels = c.memory_rules.step_block;
  c.time_rules = time_rules(plan.job, plan.engine, plan.cluster);
  c.memories = layer_memories(plan.model, plan.job, plan.engine, layout);
  c.times = layer_times(plan.model, plan.job, plan.engine, plan.cluster, layout);
  c.items.resize(c.times.size());
  if (granularity == Granularity::kernel) c.items = layer_items(plan);
  c.stages = assign_stages(plan.model, layout);
  c.chunks = layout.pp * chunks_of_stage(layout);
  if (layout.pp > 1) {
    const GroupShape group = group_shape(plan.cluster, layout, GroupKind::pp);
    c.hop_bytes = stage_hop(plan.model, plan.job, plan.cluster, layout, group).bytes;
  }
  number_layers(c);
  c.orders.reserve(c.stages.size());
  for (std::int32_t stage = 0; stage < layout.pp; ++stage) {
    c.orders.push_back(pass_order(layout, stage, c.num_microbatches));
  }
  return c;
}

void cut_regions(LoweringContext& c) {
  const Layout& layout = c.layout();
  if (layout.tp * layout.cp * layout.ep * layout.etp == 1) return;
  c.regions = true;
  c.items = layer_items(*c.plan);
  for (std::vector<LayerItem>& items : c.items) {
    if (std::ranges::none_of(items, &LayerItem::moves)) items.clear();
  }
}

bool LoweringContext::first_microbatch(std::int16_t chunk, std::int32_t microbatch) const {
  return microbatch == (copies_model(layout()) && chunk == 1 ? num_microbatches / 2 : 0);
}

bool LoweringContext::last_microbatch(std::int16_t chunk, std::int32_t microbatch) const {
  const bool first_half = copies_model(layout()) && chunk == 0;
  return microbatch + 1 == (first_half ? num_microbatches / 2 : num_microbatches);
}

DType LoweringContext::weight_dtype() const {
  const double bytes = time_rules.weight_bytes;
  return bytes == 1 ? DType::fp8 : bytes == 4 ? DType::fp32 : DType::bf16;
}

double LoweringContext::gradient_bytes() const {
  return shardwise::gradient_bytes(time_rules, layout());
}

DType LoweringContext::gradient_dtype() const {
  return gradient_bytes() == 4 ? DType::fp32 : DType::bf16;
}

}  // namespace shardwise
