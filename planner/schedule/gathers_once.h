#pragma once

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Whether in a pipeline the engine keeps what it gathered from the first forward pass of a step to
/// the last backward pass, and reduces gradients after that alone.
///
/// PyTorch's pipeline stages call set_reshard_after_backward(False) and
/// set_requires_gradient_sync(False) of FSDP2 before every backward pass, and reduce and reshard
/// after the last one; torchtitan leaves parameters whole after forward too where there is a
/// pipeline. Its policy `always`, which gathers again in each forward pass, is left out.
/// Sources: pytorch/pytorch@01386103:torch/distributed/pipelining/stage.py
/// (backward_maybe_with_nosync) and schedules.py (_add_reduce_grad); pytorch/torchtitan:
/// torchtitan/distributed/fsdp.py (get_fsdp_reshard_after_forward_policy).
constexpr bool gathers_once_in_pipelines(const EngineProfile& engine) {
  return engine.gather == GatherBuffer::copy_out;
}

/// The layout is one of those: each unit is gathered once a step.
constexpr bool gathers_once(const Layout& layout, const EngineProfile& engine) {
  return layout.pp > 1 && layout.reshard_after_forward == 0 && gathers_once_in_pipelines(engine);
}

/// Whether the part that a rank keeps of weights resharded to fewer ranks stays to the end of the
/// step, so that later forward passes are gathered among those ranks too. DeepSpeed's
/// zero_hpz_partition_size does so; FSDP2 frees the part once backward has gathered it. Source:
/// deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/partition_parameters.py:1900
/// (_partition_param_sec), stage3.py:755 (invalidate_secondary_tensor).
constexpr bool keeps_parts(const EngineProfile& engine) {
  return engine.keeps_parts_over_step && engine.gather == GatherBuffer::element_queue;
}
constexpr bool keeps_parts(const Layout& layout, const EngineProfile& engine) {
  return keeps_parts(engine) && layout.reshards_to_groups();
}

/// Gives `layout` the only values that such pipelines have, whatever it had. With one micro-batch
/// each is the last.
constexpr void gather_once(Layout& layout, const EngineProfile& engine, const JobSpec& job) {
  if (layout.pp == 1 || layout.zero_stage < 3 || !gathers_once_in_pipelines(engine)) return;
  const double sequences =
      static_cast<double>(layout.dp_shard) * layout.dp_replicate * layout.micro_batch_size;
  layout.reshard_after_forward = 0;
  layout.reduce_every_microbatch = static_cast<double>(job.global_batch_size) <= sequences;
}

}  // namespace shardwise
