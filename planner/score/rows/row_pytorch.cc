#include "planner/score/rows/row_pytorch.h"

namespace shardwise {
namespace {

/// Its wording of the loss where it is PyTorch's or a kernel in its place.
std::string_view stated_loss(const Row& row) {
  const std::string_view wording = row.flag_text("cross_entropy");
  return wording.empty() ? row.flag_text("loss") : wording;
}

/// Hugging Face's Trainer checkpoints by torch.utils.checkpoint's reentrant variant, which runs all
/// of a block again, until version 5.
/// Source: huggingface/transformers pull requests 28538 and 43203.
bool is_reentrant(const Row& row) {
  return says(row.framework, "transformers") && says(row.recompute, "gradient checkpointing") &&
         row.date < "2026-01";
}

/// Without "fused" torch.optim.AdamW takes lists of tensors on GPUs.
AdamwKernel adamw_of(const Row& row) {
  if (!row.flag_off("fused_optimizer")) return AdamwKernel::fused;
  const bool one_by_one = says_any(row.optimizer, "for-loop", "for_loop");
  return one_by_one ? AdamwKernel::for_loop : AdamwKernel::foreach;
}

}  // namespace

double metrics_bytes(const Row& row, double logits) {
  if (!says(row.framework, "composer")) return 0;
  constexpr double kMetrics = 2;
  constexpr double kMoved = 2 * 2;  // logits are read, their log-softmax is written, in 16 bits
  return kMetrics * kMoved * logits;
}

LossKernel row_loss(const Row& row, const RowEngine& engine) {
  // Its loss makes logits by chunks of tokens, unless told not to. Source: linkedin/Liger-Kernel:
  // src/liger_kernel/transformers/monkey_patch.py, fused_linear_cross_entropy=True.
  if (row.flag_on("liger_kernel") || row.flag_on("fused_ce")) return LossKernel::chunked;
  // Megatron has two fusions: its own, and Transformer Engine's.
  // Source: NVIDIA/Megatron-LM:megatron/training/arguments.py, --cross-entropy-fusion-impl.
  const std::string_view kind = row.flag_text("cross_entropy_fusion");
  const bool fused = engine.performance_recipe || row.flag_on("cross_entropy_loss_fusion") ||
                     row.flag_on("cross_entropy_fusion") || !kind.empty();
  if (fused) return says(kind, "te") ? LossKernel::fused : LossKernel::fused_fp32;
  // transformers hands such a kernel logits in fp32 and copies them without the last token's.
  // Source: huggingface/transformers@v4.46.0:src/transformers/loss/loss_utils.py,
  // ForCausalLMLoss.
  if (says(stated_loss(row), "triton")) return LossKernel::fused_fp32;
  // Composer's models take flash-attention's, unless told otherwise, which works on logits as made.
  // Source: mosaicml/llm-foundry@51652eae:llmfoundry/models/mpt/modeling_mpt.py,
  // om_model_config.get('loss_fn', 'fused_crossentropy').
  if (stated_loss(row).empty() && says(row.framework, "composer")) return LossKernel::fused;
  if (engine.megatron || !row.flag_on("compile")) return LossKernel::materialised;
  // torchtitan compiled its blocks only, until in spring 2025 the loss joined them.
  // Source: pytorch/torchtitan:train.py, "compiling loss function causes CUDA errors, turning off
  // for now", replaced by torchtitan/components/loss.py.
  const bool blocks_only = engine.torchtitan && !row.date.empty() && row.date < "2025-04";
  return blocks_only ? LossKernel::materialised : LossKernel::fused;
}

void read_pytorch(const Row& row, const RowEngine& engine, JobSpec& job) {
  // InternEvo takes apex's RMSNorm. torch.nn.RMSNorm is one kernel since PyTorch 2.9, of October
  // 2025; transformers has a module of its own, of several operators, unless a row names other
  // kernels. torchtitan and torchtune repeated grouped keys and values. Source:
  // pytorch/torchtitan@0199cbc1:torchtitan/models/llama/model.py, repeat_kv;
  // pytorch/torchtune@bd2a0fc7:torchtune/modules/attention.py.
  const bool after = row.date >= "2025-10";
  const bool one_kernel = (engine.torchtitan && after) || says(row.framework, "internevo") ||
                          says(row.flag_text("kernels"), "rmsnorm");
  job.rms_norm = one_kernel ? RmsNormKernel::fused : RmsNormKernel::composite;
  job.repeat_key_values = !after && says_any(row.framework, "torchtitan", "torchtune", "torchao");
  job.adamw = adamw_of(row);
  if (is_reentrant(row)) job.recompute_stops_early = false;
  // Written for Hopper, as cuDNN's kernels are, which the curves are of.
  // Source: Shah et al., FlashAttention-3 (arXiv:2407.08608), section 4.1.
  const bool third = says_any(row.flag_text("attention"), "fa3", "flashattention-3");
  if (third && job.attention == AttentionKernel::flash) job.attention = AttentionKernel::cudnn;
}

void read_shared_units(const Row& row, JobSpec& job, Layout& layout, Notes& notes) {
  // lit-gpt wraps whole blocks with Fabric's use_orig_params, so that a flat parameter of frozen
  // weights and adapters has a gradient, of all of it, which no_backward_sync keeps whole.
  // Source: Lightning-AI/litgpt@26857050:finetune/lora.py; Lightning-AI/pytorch-lightning:
  // src/lightning/fabric/strategies/fsdp.py; pytorch@v2.1.0:torch/distributed/fsdp/_flat_param.py.
  const bool shares = says_any(row.framework, "litgpt", "lit-gpt") && job.frozen_base;
  if (!shares || layout.zero_stage < 3) return;
  job.frozen_base = false;
  job.optimizer = Optimizer::sgd;
  layout.reduce_every_microbatch = false;
  notes.assume("adapters share FSDP units with frozen weights, whose gradients are whole");
  notes.refuse_time("weight gradients of units that adapters share are not computed");
}

}  // namespace shardwise
