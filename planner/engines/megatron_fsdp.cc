#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile megatron_fsdp() {
  EngineProfile e;
  e.name = "megatron_fsdp";
  e.label = "Megatron-FSDP";
  e.zero_stages = {0, 1, 2, 3};
  e.hybrid = true;
  e.outer_shards_optimizer = true;
  e.main_weights = MainWeights::separate;
  e.gather = GatherBuffer::element_queue;
  e.gradient_buffer = GradientBuffer::unit_queue;
  e.padding = ShardPadding::unit;
  e.kernels = Kernels::transformer_engine;
  e.loss = LossKernel::fused_fp32;
  e.norms_latent_queries = true;
  e.fp32_gradients_default = false;  // main_grads None: the parameter's dtype
  // update_main_grads casts to the main dtype: + 4 bytes an element until zero_grad.
  e.casts_gradients_for_optimizer = true;
  e.keeps_root_gathered = true;  // parameters outside the units are kept whole over the step
  e.reduce_dtype = DType::bf16;
  e.bucket_elements = 40'000'000;  // of parameters outside the units
  e.bucket_elements_per_rank = 1'000'000;
  e.vocabulary_multiple = 128;
  // The code takes max() where its comment says cap: capacities never below these.
  e.gather_queue_elements = 500'000'000;
  e.reduce_queue_elements = 1'000'000'000;
  // Gradients travel in the dtype of their buffer: megatron_fsdp_grad_comm_dtype is None
  // (megatron/core/distributed/distributed_data_parallel_config.py).
  e.sources = {
      "NVIDIA/Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/"
      "megatron_fsdp.py:420-445",
      "NVIDIA/Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/"
      "param_and_grad_buffer.py:1883-1909,2324-2800,3351-3400",
  };
  return e;
}

}  // namespace shardwise
