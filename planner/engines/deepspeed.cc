#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile deepspeed() {
  EngineProfile e;
  e.name = "deepspeed";
  e.label = "DeepSpeed ZeRO";
  e.zero_stages = {0, 1, 2, 3};
  e.hybrid = true;  // MiCS, hpZ
  e.context_parallel = false;
  e.offload_optimizer = true;
  e.offloads_gradients = true;
  e.main_weights = MainWeights::separate;
  e.gather = GatherBuffer::element_queue;
  e.gradient_buffer = GradientBuffer::copy_in;
  e.padding = ShardPadding::tensor;
  e.kernels = Kernels::eager;
  e.fp32_gradients_default = false;
  e.casts_gradients_for_optimizer = true;  // the fp32 partition that the optimizer steps on
  e.reduce_dtype = DType::fp16;
  e.bucket_elements = 500'000'000;          // reduce_bucket_size, allgather_bucket_size
  e.reduce_buffer_elements = 500'000'000;   // contiguous_gradients: one buffer of that size
  e.overlaps_updated_gather = false;        // step() ends with all_gather_dp_groups
  e.gather_queue_elements = 1'000'000'000;  // stage3_max_live_parameters
  e.sources = {
      "deepspeedai/DeepSpeed@edaa7221:deepspeed/runtime/zero/config.py",
      "deepspeedai/DeepSpeed@edaa7221:deepspeed/runtime/zero/stage_1_and_2.py",
      "deepspeedai/DeepSpeed@edaa7221:deepspeed/runtime/zero/stage3.py",
  };
  return e;
}

}  // namespace shardwise
