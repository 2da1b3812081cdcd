#pragma once

#include <span>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// The kernels a job runs with on an engine: the job's, or the engine's own.
Kernels kernels_of(const JobSpec& job, const EngineProfile& engine);

/// The loss of a job on an engine: the job's; if the job leaves it open, what plain PyTorch
/// computes under the engines whose users run that (EngineProfile::loss), and a fused one where
/// torch.compile or our own kernels compute it.
LossKernel loss_of(const JobSpec& job, const EngineProfile& engine);

/// The RMSNorm of PyTorch's operators: the job's, or what the engine's users run. Never by_engine.
RmsNormKernel rms_norm_of(const JobSpec& job, const EngineProfile& engine);

/// Whether GEMMs add weight gradients to the buffer of their gradients: the engine has one.
bool fuses_weight_gradients(const JobSpec& job, const EngineProfile& engine);

/// The job with both of them stated, and without the fused weight gradients that FSDP2 in Megatron
/// refuses: gradients of Transformer Engine's modules that have no buffer.
JobSpec settled_job(const JobSpec& job, const EngineProfile& engine);

/// Whether the engine steps with torch.optim.AdamW: PyTorch's FSDP, on its fp32 shards.
bool steps_with_torch_adamw(const JobSpec& job, const EngineProfile& engine);

/// Whether bitsandbytes' AdamW may stand in its place: parameters are plain tensors, as FSDP1's
/// are; FSDP2's are DTensors, which its kernels do not take.
bool takes_bitsandbytes(const JobSpec& job, const EngineProfile& engine);

/// Choices a job leaves to its engines that change memory, a sentence each: the loss, the norm,
/// the optimizer's update, checkpoints of frozen blocks. Engines that take the same share a
/// sentence; ids end in ".usual".
/// \param adamw_open  nobody asked for a job.adamw
std::vector<Assumption> usual_kernels_assumptions(const ModelSpec& model, const JobSpec& job,
                                                  std::span<const EngineProfile* const> engines,
                                                  bool adamw_open);

}  // namespace shardwise
