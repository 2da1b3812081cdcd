#include "tests/planner/lowering/sampler.h"

#include <algorithm>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/legality/layout_rules.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise::test {

Layout Sampler::draw() {
  Layout l;
  l.tp = any(space_.tp);
  l.cp = any(space_.cp);
  l.pp = any(space_.pp);
  l.vpp = any(space_.vpp);
  l.first_stage_layers = any(space_.first_stage_layers);
  l.last_stage_layers = any(space_.last_stage_layers);
  l.ep = any(space_.ep);
  l.etp = any(space_.etp);
  l.dp_replicate = any(space_.dp_replicate);
  // Some engines have data parallelism alone, which chance would rarely find.
  if (random_() % 2 == 0) l.tp = l.cp = l.pp = l.vpp = l.ep = l.etp = 1;
  const std::int64_t taken = std::int64_t{l.tp} * l.cp * l.pp * l.dp_replicate;
  l.dp_shard =
      static_cast<std::int32_t>(std::max<std::int64_t>(1, question_.cluster->gpus / taken));
  l.micro_batch_size = any(space_.micro_batch_size);
  l.recompute_interval = any(space_.recompute_interval);
  l.zero_stage = any(space_.zero_stage);
  l.sequence_parallel = any(space_.sequence_parallel);
  l.outer_shards_optimizer = any(space_.outer_shards_optimizer);
  l.reshard_after_forward = any(space_.reshard_after_forward);
  // A number of ranks, which no space has of itself.
  if (question_.engine->reshards_to_groups && random_() % 4 == 0) {
    l.reshard_after_forward = std::max(1, l.dp_shard / 2);
  }
  l.reduce_every_microbatch = any(space_.reduce_every_microbatch);
  l.offload_optimizer = any(space_.offload_optimizer);
  l.offload_activations = any(space_.offload_activations);
  l.double_buffer = any(space_.double_buffer);
  l.fp32_gradients = any(space_.fp32_gradients);
  l.overlap_grad_reduce = any(space_.overlap_grad_reduce);
  l.overlap_param_gather = any(space_.overlap_param_gather);
  // Buckets of all sizes, which only spaces that are asked for them have.
  if (chooses_buckets(*question_.engine) && random_() % 4 == 0) {
    l.ddp_bucket_size = static_cast<std::int64_t>(random_() % 30'000'000);
    l.ddp_pad_buckets_for_high_nccl_busbw = random_() % 2 == 0;
  }
  l.recompute = any(space_.recompute);
  l.schedule = any(space_.schedule);
  if (l.pp == 1) l.schedule = PipelineSchedule::one_f_one_b;
  l.cp_kind = any(space_.cp_kind);
  return l;
}

bool Sampler::legal(const Layout& layout) const {
  for (const LayoutRule& rule : layout_rules()) {
    if (!rule.redundant && rule.broken(question_, layout)) return false;
  }
  return true;
}

std::string text_of(const Layout& layout) {
  std::string text;
  for (const std::string& key : layout_keys()) text += key + "=" + field_text(layout, key) + " ";
  return text;
}

}  // namespace shardwise::test
