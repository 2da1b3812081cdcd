#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile megatron_deepspeed() {
  EngineProfile e = deepspeed();
  e.name = "megatron_deepspeed";
  e.label = "Megatron-DeepSpeed with DeepSpeed 0.4 (2021)";
  e.zero_stages = {0, 1};
  e.hybrid = false;
  e.expert_parallel = false;
  e.offload_optimizer = false;
  e.offloads_gradients = false;
  e.gather = GatherBuffer::in_place;
  e.padding = ShardPadding::bucket;
  e.vocabulary_multiple = 128;
  // Its first ZeRO-1 flattens all gradients into a second copy before it reduces them.
  e.reduce_buffer_elements = 0;
  e.flattens_gradients = true;
  e.sources = {
      "deepspeedai/DeepSpeed@v0.4.0:deepspeed/runtime/zero/stage1.py",
      "bigscience-workshop/Megatron-DeepSpeed:megatron/training.py",
  };
  return e;
}

}  // namespace shardwise
