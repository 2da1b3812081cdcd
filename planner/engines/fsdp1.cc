#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile fsdp1() {
  EngineProfile e;
  e.name = "fsdp1";
  e.label = "PyTorch FSDP1 (FullyShardedDataParallel)";
  e.zero_stages = {0, 3};
  e.hybrid = true;
  e.pipeline = false;
  e.tensor_parallel = false;
  e.context_parallel = false;
  e.expert_parallel = false;
  e.main_weights = MainWeights::parameter;
  e.gather = GatherBuffer::rate_limited;
  e.gradient_buffer = GradientBuffer::copy_in;
  e.padding = ShardPadding::flat;
  e.kernels = Kernels::eager;
  e.loss = LossKernel::materialised;  // F.cross_entropy(logits.float())
  e.reduce_dtype = DType::bf16;       // MixedPrecision(reduce_dtype) as its users set it
  e.keeps_root_gathered = true;       // the root is not freed after forward
  e.all_gather_shares_communicator = true;
  e.sources = {
      "pytorch/pytorch:torch/distributed/fsdp/_runtime_utils.py",
      "pytorch/pytorch:torch/distributed/fsdp/_flat_param.py",
      "pytorch/pytorch pull 83666 (rate limiter)",
  };
  return e;
}

}  // namespace shardwise
