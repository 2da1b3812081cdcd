#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile deepspeed() {
  EngineProfile e;
  e.name = "deepspeed";
  e.label = "DeepSpeed ZeRO";
  e.zero_stages = {0, 1, 2, 3};
  e.pipeline_zero_stages = {0, 1};  // PipelineEngine
  e.context_parallel = false;
  e.experts_split_apart = false;  // deepspeed.moe: enable_expert_tensor_parallelism, a switch
  e.offload_optimizer = true;
  e.offloads_gradients = true;
  e.main_weights = MainWeights::separate;
  e.gather = GatherBuffer::element_queue;
  e.gradient_buffer = GradientBuffer::copy_in;
  e.padding = ShardPadding::tensor;
  e.kernels = Kernels::eager;
  e.loss = LossKernel::materialised;  // F.cross_entropy(logits.float())
  e.fp32_gradients_default = false;
  e.casts_gradients_for_optimizer = true;  // the fp32 partition that the optimizer steps on
  e.sub_group_elements = 1'000'000'000;    // sub_group_size
  e.reduce_dtype = DType::fp16;
  e.bucket_elements = 500'000'000;         // reduce_bucket_size, allgather_bucket_size
  e.reduce_buffer_elements = 500'000'000;  // contiguous_gradients: one buffer of that size
  e.overlap_doubles_buffer = true;         // overlap_comm: setup_buckets has two
  e.keeps_gradient_shards = true;          // grad_partitions_flat_buffer, the bucket before it
  e.joins_whole_gradients = true;          // grads_in_partition
  e.whole_moments_early = true;       // FP16_Optimizer, bf16's too: initialize_optimizer_states
  e.overlaps_updated_gather = false;  // step() ends with all_gather_dp_groups
  e.gather_queue_elements = 1'000'000'000;  // stage3_max_live_parameters
  e.prefetch_elements = 50'000'000;         // stage3_prefetch_bucket_size
  e.reshards_to_groups = true;              // zero_hpz_partition_size: ds_secondary_tensor …
  e.keeps_parts_over_step = true;           // … to invalidate_secondary_tensor
  e.sources = {
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/config.py:121 (no MiCS)",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/pipe/engine.py:76 (pipelines)",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/moe/layer.py:93 (experts under tp)",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/config.py",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/stage_1_and_2.py",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/stage3.py",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/partition_parameters.py (hpZ)",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/partitioned_param_coordinator.py",
      "deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/fp16/fused_optimizer.py",
  };
  return e;
}

}  // namespace shardwise
