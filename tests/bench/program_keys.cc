#include "tests/bench/program_keys.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "planner/schedule/pipeline_slots.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

using KeyCounts = std::unordered_map<std::uint64_t, std::int64_t>;

std::uint64_t mixed(std::uint64_t value, std::int64_t field) {
  value = (value ^ static_cast<std::uint64_t>(field)) * 0x9E3779B97F4A7C15ULL;
  return value ^ (value >> 29);
}

bool fills_buckets(const EngineProfile& engine) {
  return engine.bucket_elements > 0 && engine.gradient_buffer != GradientBuffer::unit_queue;
}

/// Adds the layouts of a pipeline under a layer choice.
void count(const WorkItem::Stretch& stretch, Layout layout, const EngineProfile& engine,
           std::int64_t few, KeyCounts& counts) {
  for (const WorkItem::PlacedMesh& placed : stretch.meshes) {
    layout.dp_shard = placed.mesh->dp_shard;
    layout.dp_replicate = placed.mesh->dp_replicate;
    for (const StateChoice& states : placed.states) {
      set(layout, states);
      counts[program_key(layout, engine, few)] +=
          static_cast<std::int64_t>(placed.mesh->orders.size());
    }
  }
}

void count(const WorkItem& item, const EngineProfile& engine, std::int64_t stages,
           KeyCounts& counts) {
  for (const WorkItem::Stretch& stretch : item.stretches) {
    Layout layout = item.base;
    layout.pp = stretch.pp;
    for (const PipelineChoice& pipeline : stretch.pipelines) {
      set(layout, pipeline);
      const std::int64_t few =
          few_microbatches(layout, stretch.num_microbatches, stages * layout.pp);
      for (const LayerChoice& layer : item.layers) {
        set(layout, layer);
        count(stretch, layout, engine, few, counts);
      }
    }
  }
}

std::uint64_t mixed(std::uint64_t value, const StageProgram& stage, const ProgramOp& op) {
  const std::int64_t fields[] = {static_cast<std::int64_t>(op.role),
                                 static_cast<std::int64_t>(op.stream),
                                 static_cast<std::int64_t>(op.pass),
                                 op.routed,
                                 op.chunk,
                                 op.layer,
                                 op.microbatch,
                                 op.part,
                                 op.message,
                                 op.peer};
  for (const std::int64_t field : fields) value = mixed(value, field);
  const CollectiveWork* work = stage.communication(op);
  const std::int64_t ends = work != nullptr && work->ends ? 1 : 0;
  value = mixed(value, work == nullptr ? 0 : 2 + 2 * static_cast<std::int64_t>(work->group) + ends);
  for (const std::uint32_t wait : stage.of(op.waits)) value = mixed(value, wait);
  return mixed(value, -1);
}

}  // namespace

std::uint64_t fingerprint(const StepProgram& program, bool costs) {
  std::uint64_t value = 1;
  for (const StageProgram& stage : program.stages) {
    value = mixed(value, static_cast<std::int64_t>(stage.operations.size()));
    for (const ProgramOp& op : stage.operations) {
      value = mixed(value, stage, op);
      if (costs) value = mixed(value, op.cost);
    }
  }
  return value;
}

std::int64_t few_microbatches(const Layout& layout, std::int64_t number, std::int64_t least) {
  const std::int64_t period = microbatches_a_period(layout);
  const std::int64_t fewest = std::max(least, facts_of(layout).fewest_microbatches(layout.pp));
  return number - (number - std::min(number, fewest)) / period * period;
}

std::uint64_t program_key(const Layout& layout, const EngineProfile& engine,
                          std::int64_t microbatches) {
  const std::int64_t inner = std::int64_t{layout.dp_shard} * layout.cp;
  const bool buckets = fills_buckets(engine);
  std::uint64_t key = 1;
  for (const std::int64_t field :
       {std::int64_t{layout.pp}, std::int64_t{layout.vpp},
        static_cast<std::int64_t>(layout.schedule), std::int64_t{layout.first_stage_layers},
        std::int64_t{layout.last_stage_layers}, microbatches,
        // What cuts the elements that fill a queue or a bucket; else groups of more than one rank.
        std::int64_t{layout.tp}, buckets ? inner : std::int64_t{inner > 1},
        std::int64_t{layout.dp_replicate > 1}, std::int64_t{layout.ep}, std::int64_t{layout.etp},
        std::int64_t{layout.zero_stage}, std::int64_t{layout.outer_shards_optimizer},
        std::int64_t{layout.reshard_after_forward}, std::int64_t{layout.reduce_every_microbatch},
        std::int64_t{layout.offload_optimizer}, std::int64_t{layout.offload_activations},
        std::int64_t{layout.double_buffer}, std::int64_t{layout.overlap_grad_reduce},
        std::int64_t{layout.overlap_param_gather}, layout.ddp_bucket_size,
        std::int64_t{layout.ddp_pad_buckets_for_high_nccl_busbw},
        std::int64_t{layout.sequence_parallel}, static_cast<std::int64_t>(layout.recompute),
        std::int64_t{layout.recompute_interval}}) {
    key = mixed(key, field);
  }
  return key;
}

SharedKeys shared_keys(const std::vector<WorkItem>& items, const EngineProfile& engine,
                       std::int64_t stages) {
  KeyCounts counts;
  for (const WorkItem& item : items) count(item, engine, stages, counts);
  SharedKeys all;
  all.keys = static_cast<std::int64_t>(counts.size());
  std::vector<std::int64_t> sizes;
  for (const auto& [key, layouts] : counts) {
    all.layouts += layouts;
    if (layouts == 1) ++all.alone;
    if (layouts < 8) all.below_8 += layouts;
    sizes.push_back(layouts);
  }
  std::ranges::sort(sizes);
  std::int64_t below = 0;
  for (const std::int64_t size : sizes) {
    below += size;
    if (2 * below < all.layouts) continue;
    all.typical = size;
    break;
  }
  return all;
}

}  // namespace shardwise
