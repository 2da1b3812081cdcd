#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile fsdp2_in_megatron() {
  EngineProfile e = fsdp2();
  e.name = "fsdp2_in_megatron";
  e.label = "PyTorch FSDP2 in Megatron-Core";
  e.hybrid = false;
  e.pipeline = false;
  e.expert_parallel = false;
  e.tied_head = false;
  e.fp16 = false;
  e.narrow_states = false;
  e.reshards_to_groups = false;  // its flag is a switch
  // No mixed-precision policy is passed: parameters are sharded, reduced and gathered in the
  // model's dtype; the optimizer keeps fp32 main weights and casts gradients to them.
  e.main_weights = MainWeights::separate;
  e.reduce_dtype = DType::bf16;
  e.fp32_gradients_default = false;
  e.casts_gradients_for_optimizer = true;
  e.kernels = Kernels::transformer_engine;
  e.norms_latent_queries = true;
  e.loss = LossKernel::fused_fp32;
  e.vocabulary_multiple = 128;
  e.optimizer_scratch_bytes = 0;
  e.sources = {
      "NVIDIA/Megatron-LM@d98e8a64:megatron/core/distributed/"
      "torch_fully_sharded_data_parallel.py:28-167",
      "NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py:1036-1054 (what it refuses)",
  };
  return e;
}

}  // namespace shardwise
