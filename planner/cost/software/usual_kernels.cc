#include "planner/cost/software/usual_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace shardwise {
namespace {

constexpr const char* kSource = "docs/memory.md, What PyTorch's users run";

bool has_rms_norm(const ModelSpec& model) {
  return std::ranges::any_of(model.kinds, [](const LayerSpec& layer) {
    return std::ranges::any_of(layer.operations, [](const OperationSpec& op) {
      return op.kind == OpKind::norm && op.rms;
    });
  });
}

}  // namespace

Kernels kernels_of(const JobSpec& job, const EngineProfile& engine) {
  return job.kernels == Kernels::by_engine ? engine.kernels : job.kernels;
}

LossKernel loss_of(const JobSpec& job, const EngineProfile& engine) {
  if (job.loss != LossKernel::by_engine) return job.loss;
  const Kernels kernels = kernels_of(job, engine);
  const bool fuses = kernels == Kernels::compiled || kernels == Kernels::planned;
  // megatron/training/determinism.py:24: cross_entropy_loss_fusion has to be off.
  if (engine.loss == LossKernel::fused_fp32 && job.deterministic && !fuses) {
    return LossKernel::materialised;
  }
  return fuses ? LossKernel::fused : engine.loss;
}

RmsNormKernel rms_norm_of(const JobSpec& job, const EngineProfile& engine) {
  return job.rms_norm == RmsNormKernel::by_engine ? engine.rms_norm : job.rms_norm;
}

bool fuses_weight_gradients(const JobSpec& job, const EngineProfile& engine) {
  return job.fused_gradient_accumulation && engine.gradient_buffer != GradientBuffer::copy_in;
}

JobSpec settled_job(const JobSpec& job, const EngineProfile& engine) {
  JobSpec settled = job;
  settled.loss = loss_of(job, engine);
  settled.rms_norm = rms_norm_of(job, engine);
  if (engine.kernels == Kernels::transformer_engine) {
    settled.fused_gradient_accumulation = fuses_weight_gradients(job, engine);
  }
  return settled;
}

bool steps_with_torch_adamw(const JobSpec& job, const EngineProfile& engine) {
  return job.optimizer == Optimizer::adamw && engine.main_weights == MainWeights::parameter &&
         kernels_of(job, engine) != Kernels::planned;
}

bool takes_bitsandbytes(const JobSpec& job, const EngineProfile& engine) {
  return steps_with_torch_adamw(job, engine) && engine.padding == ShardPadding::flat;
}

std::vector<Assumption> usual_kernels_assumptions(const ModelSpec& model, const JobSpec& job,
                                                  std::span<const EngineProfile* const> engines,
                                                  bool adamw_open) {
  std::vector<Assumption> all;
  const auto say = [&](const char* id, const EngineProfile& engine, const char* what) {
    const std::string sentence = fmt::format(": {}", what);
    const auto said = std::ranges::find_if(all, [&](const Assumption& each) {
      return each.id == id && each.text.ends_with(sentence);
    });
    if (said == all.end()) {
      all.push_back({id, engine.name + sentence, kSource});
    } else {
      said->text.insert(said->text.size() - sentence.size(), ", " + engine.name);
    }
  };
  const bool norms = job.rms_norm == RmsNormKernel::by_engine && has_rms_norm(model);
  for (const EngineProfile* engine : engines) {
    const LossKernel loss = loss_of(job, *engine);
    const bool megatrons = engine->loss == LossKernel::fused_fp32;
    if (job.loss == LossKernel::by_engine && loss == LossKernel::materialised && !megatrons) {
      say("loss.usual", *engine, "F.cross_entropy on whole logits (--loss)");
    }
    if (job.loss == LossKernel::by_engine && loss == LossKernel::fused) {
      const Kernels kernels = kernels_of(job, *engine);
      if (kernels == Kernels::compiled) {
        say("loss.usual", *engine, "a loss that torch.compile fuses (--loss)");
      } else if (engines.size() == 1 && kernels != Kernels::planned) {
        say("loss.usual", *engine, "a fused loss (--loss)");
      }
    }
    // A ranking of several engines says what is not Megatron's.
    if (engines.size() == 1 && job.loss == LossKernel::by_engine && megatrons) {
      if (loss == LossKernel::fused_fp32) {
        say("loss.usual", *engine,
            "Megatron's own fused loss, --cross-entropy-loss-fusion (--loss)");
      } else if (loss == LossKernel::materialised) {
        say("loss.usual", *engine,
            "Megatron's loss that is not fused, for --deterministic (--loss)");
      }
    }
    if (norms && kernels_of(job, *engine) == Kernels::eager) {
      const bool fused = rms_norm_of(job, *engine) == RmsNormKernel::fused;
      say("rms_norm.usual", *engine,
          fused ? "RMSNorms are torch.nn.RMSNorm, one kernel (--rms-norm)"
                : "RMSNorms are transformers' own, several operators in fp32 (--rms-norm)");
    }
    const bool torchs = steps_with_torch_adamw(job, *engine) && !is_bitsandbytes(job.adamw);
    if (adamw_open && torchs) {
      say("adamw.usual", *engine,
          "torch.optim.AdamW(fused=True); by default it takes foreach, which holds one more tensor "
          "of each shard in the step (--adamw)");
    }
    const bool frozen = job.frozen_base && engine->gather == GatherBuffer::rate_limited;
    if (engines.size() == 1 && frozen && job.recompute_stops_early) {
      say("recompute.usual", *engine,
          "--recompute full is not reentrant; reentrant checkpoints, transformers' before version "
          "5, leave two tensors of each finished block (--recompute-stops-early=false)");
    }
  }
  return all;
}

}  // namespace shardwise
