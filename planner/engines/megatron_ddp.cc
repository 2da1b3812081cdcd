#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile megatron_ddp() {
  EngineProfile e;
  e.name = "megatron_ddp";
  e.label = "Megatron-Core DDP";
  e.zero_stages = {0, 1};
  e.hybrid = true;
  e.offload_optimizer = true;
  e.bf16_main_weights = false;  // --main-params-dtype: fp32 or fp16
  e.main_weights = MainWeights::separate;
  e.gather = GatherBuffer::in_place;
  e.gradient_buffer = GradientBuffer::contiguous;
  e.padding = ShardPadding::bucket;
  e.fp32_accumulation = true;
  e.kernels = Kernels::transformer_engine;
  e.loss = LossKernel::fused_fp32;
  e.norms_latent_queries = true;
  e.tp_overlap = TpOverlap::backward;  // core/tensor_parallel/layers.py, linear backward
  e.casts_gradients_for_optimizer = true;
  e.bucket_elements = 40'000'000;
  e.bucket_elements_per_rank = 1'000'000;
  e.pad_multiple = 128;
  e.start_multiple = 64;
  e.vocabulary_multiple = 128;
  e.all_gather_shares_communicator = true;
  e.sources = {
      "NVIDIA/Megatron-LM@d98e8a64:megatron/core/distributed/distributed_data_parallel.py:121-172",
      "NVIDIA/Megatron-LM@d98e8a64:megatron/core/distributed/param_and_grad_buffer.py",
      "NVIDIA/Megatron-LM@d98e8a64:megatron/core/optimizer/param_layout.py:24-43",
      "NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py --make-vocab-size-divisible-by",
  };
  return e;
}

}  // namespace shardwise
