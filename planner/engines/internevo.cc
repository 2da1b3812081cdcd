#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile internevo() {
  EngineProfile e;
  e.name = "internevo";
  e.label = "InternEvo (HybridZeroOptimizer, FSDP)";
  e.zero_stages = {0, 1, 3};
  e.hybrid = true;
  e.context_parallel = false;
  e.main_weights = MainWeights::separate;
  e.gather = GatherBuffer::rate_limited;
  e.gradient_buffer = GradientBuffer::copy_in;
  e.padding = ShardPadding::flat;
  e.kernels = Kernels::eager;
  e.rms_norm = RmsNormKernel::fused;  // apex's, where it is installed: try_import_RMSNorm
  e.fp32_gradients_default = false;
  e.casts_gradients_for_optimizer = true;  // flat fp32 gradients of the partition
  e.reduce_dtype = DType::bf16;
  e.bucket_elements = 536'870'912;  // reduce_bucket_size 512 * 1024 * 1024, compared with numel()
  // torch.optim.AdamW of PyTorch 2.0 on one flat tensor: the root of the second moment and the
  // denominator are tensors of their own.
  e.optimizer_scratch_bytes = 8;
  e.sources = {
      "InternLM/InternEvo:internlm/solver/optimizer/hybrid_zero_optim.py",
      "InternLM/InternEvo:internlm/solver/optimizer/fsdp_optimizer.py",
      "InternLM/InternEvo:internlm/model/ops/fusion_ops_import.py",
      "pytorch/pytorch@v2.0.0:torch/optim/adamw.py, _multi_tensor_adamw",
  };
  return e;
}

}  // namespace shardwise
