#include "planner/engines/engines.h"

namespace shardwise {

EngineProfile fsdp2() {
  EngineProfile e;
  e.name = "fsdp2";
  e.label = "PyTorch FSDP2 (fully_shard)";
  e.zero_stages = {3};
  e.hybrid = true;
  e.schedules = {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                 PipelineSchedule::looped_bfs, PipelineSchedule::zb_v,
                 PipelineSchedule::dualpipe_v};
  e.main_weights = MainWeights::parameter;
  e.gather = GatherBuffer::copy_out;
  e.gradient_buffer = GradientBuffer::copy_in;
  e.padding = ShardPadding::row;
  e.kernels = Kernels::eager;
  e.loss = LossKernel::materialised;  // F.cross_entropy(logits.float())
  e.rms_norm = RmsNormKernel::fused;  // torchtitan's torch.nn.RMSNorm
  e.reduce_dtype = DType::fp32;
  e.reshards_to_groups = true;
  e.all_gather_shares_communicator = true;
  e.sources = {
      "pytorch/pytorch:torch/distributed/pipelining/schedules.py (1F1B, GPipe, ZBV, DualPipeV)",
      "pytorch/pytorch:torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py",
      "pytorch/pytorch:torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py",
      "pytorch/pytorch@v2.15.0:torch/distributed/fsdp/_fully_shard/_fsdp_init.py",
      "pytorch/pytorch@v2.15.0:torch/distributed/fsdp/_fully_shard/_fsdp_param.py",
      "pytorch/torchtitan@b5bcd76c:docs/fsdp.md",
  };
  return e;
}

}  // namespace shardwise
