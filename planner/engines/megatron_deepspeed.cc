#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile megatron_deepspeed() {
  EngineProfile e = deepspeed();
  e.name = "megatron_deepspeed";
  e.label = "Megatron-DeepSpeed with DeepSpeed 0.4 (2021)";
  e.zero_stages = {0, 1};
  e.expert_parallel = false;
  e.offload_optimizer = false;
  e.offloads_gradients = false;
  e.gather = GatherBuffer::in_place;
  e.padding = ShardPadding::bucket;
  e.vocabulary_multiple = 128;
  // Its first ZeRO-1 flattens all gradients into a second copy before it reduces them.
  e.reduce_buffer_elements = 0;
  e.overlap_doubles_buffer = false;
  e.keeps_gradient_shards = false;
  e.sub_group_elements = 0;
  e.whole_moments_early = false;
  e.flattens_gradients = true;
  e.joins_whole_gradients = false;
  e.prefetch_elements = 0;
  e.sources = {
      "deepspeedai/DeepSpeed@v0.4.0:deepspeed/runtime/zero/stage1.py",
      "bigscience-workshop/Megatron-DeepSpeed:megatron/training.py",
  };
  return e;
}

}  // namespace shardwise
