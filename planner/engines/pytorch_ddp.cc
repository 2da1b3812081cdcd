#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile pytorch_ddp() {
  EngineProfile e;
  e.name = "pytorch_ddp";
  e.label = "PyTorch DDP (DistributedDataParallel)";
  e.zero_stages = {0};
  e.pipeline = false;
  e.tensor_parallel = false;
  e.context_parallel = false;
  e.expert_parallel = false;
  e.bf16_main_weights = false;  // autocast leaves parameters in fp32
  e.main_weights = MainWeights::parameter;
  e.gradient_buffer = GradientBuffer::copy_in;  // gradient_as_bucket_view=False
  e.kernels = Kernels::eager;
  e.loss = LossKernel::materialised;  // F.cross_entropy(logits.float())
  e.reduce_dtype = DType::fp32;       // that of the parameters
  e.keeps_buckets = true;
  e.bucket_elements = 6'553'600;      // bucket_cap_mb 25 of fp32
  e.first_bucket_elements = 262'144;  // _DEFAULT_FIRST_BUCKET_BYTES 1 MiB
  e.sources = {
      "pytorch/pytorch@v2.15.0:torch/nn/parallel/distributed.py, _ddp_init_helper",
      "pytorch/pytorch@v2.15.0:torch/csrc/distributed/c10d/reducer.cpp (rebuild_buckets)",
      "pytorch/pytorch@v2.15.0:torch/csrc/distributed/c10d/reducer.hpp (first bucket)",
  };
  return e;
}

}  // namespace shardwise
