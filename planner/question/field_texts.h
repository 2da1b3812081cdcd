#pragma once

#include <array>

#include "planner/spec/json/fields.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {

/// A field of a JobSpec or a Layout in words: for the help of its flag and for the form of a
/// viewer.
struct FieldText {
  const char* group;
  const char* field;
  const char* value;  // what stands for the value; empty for a switch
  const char* text;   // what it sets [what it is when not given]
};

inline constexpr const char* kJobGroup = "Job";
inline constexpr const char* kKernelGroup = "Kernels and numbers";
inline constexpr const char* kOptimizerGroup = "Optimizer and gradients";
inline constexpr const char* kExpertGroup = "Experts";
inline constexpr const char* kDegreeGroup = "Parallel degrees";
inline constexpr const char* kPipelineGroup = "Pipeline";
inline constexpr const char* kShardingGroup = "Sharding and overlap";
inline constexpr const char* kRecomputeGroup = "Recompute and offload";

inline constexpr std::array<FieldText, 37> kJobTexts = {{
    {kJobGroup, "sequence_length", "N", "Tokens of a sequence [4096]"},
    {kJobGroup, "global_batch_size", "N", "Sequences of a step [about 4 Mi tokens]"},
    {kJobGroup, "tokens_total", "N", "Tokens of the whole training"},
    {kJobGroup, "frozen_base", "", "Train adapters only; the base weights are frozen"},
    {kJobGroup, "held_back", "SHARE", "Share of GPU memory that a plan may not use [0]"},
    {kJobGroup, "bytes_per_token_input", "N", "Bytes read from storage for a token [4]"},
    {kJobGroup, "attention_mask_in_batch", "", "Each batch carries its attention mask"},

    {kKernelGroup, "precision", "TYPE",
     "bf16, fp16, fp32, fp8 or fp4 [bf16; fp16 on a GPU without bf16]"},
    {kKernelGroup, "fp8_recipe", "KIND",
     "Scaling of fp8: delayed, tensorwise, rowwise, rowwise_wide_gradient or block [tensorwise]"},
    {kKernelGroup, "fp8_parameter_gather", "", "Keep and gather weights in fp8 (--precision fp8)"},
    {kKernelGroup, "attention", "KIND", "flash, flash1, cudnn or materialised [flash]"},
    {kKernelGroup, "loss", "KIND",
     "fused, fused_fp32, materialised or chunked [fused; fused_fp32 under Megatron's engines, "
     "materialised with PyTorch's operators under fsdp2, fsdp1 and deepspeed]"},
    {kKernelGroup, "loss_chunk_rows", "N",
     "Tokens of each chunk of --loss chunked in our kernels; 0: vocabulary / hidden size chunks "
     "[on GPUs the fastest of 1024, 2048 and 4096 that fits; 0 on CPUs]"},
    {kKernelGroup, "kernels", "KIND",
     "eager, compiled, transformer_engine or planned (our own) [the engine's]"},
    {kKernelGroup, "rms_norm", "KIND",
     "RMSNorm of PyTorch's operators: fused (torch.nn.RMSNorm) or composite (transformers' own) "
     "[the engine's]"},
    {kKernelGroup, "repeat_key_values", "",
     "The model repeats grouped keys and values for every query head before PyTorch's attention"},
    {kKernelGroup, "tp_overlap", "KIND",
     "Overlap of tensor-parallel communication: none, backward or pipelined [the engine's]"},
    {kKernelGroup, "cuda_graphs", "", "Replay recorded kernels (CUDA graphs)"},
    {kKernelGroup, "deterministic", "", "Use bitwise repeatable kernels"},
    {kKernelGroup, "dropout", "P", "Dropout probability [0]"},

    {kOptimizerGroup, "optimizer", "KIND", "adamw, sgd or sgd_momentum [adamw]"},
    {kOptimizerGroup, "adamw", "KIND",
     "AdamW of fsdp1 and fsdp2: fused, foreach or for_loop; bitsandbytes' of fsdp1: bnb_8bit, "
     "paged "
     "or paged_8bit [fused; paged with --base-format]"},
    {kOptimizerGroup, "main_dtype", "TYPE",
     "Type of the weights the optimizer updates [fp32]; bf16: rounded stochastically in a run"},
    {kOptimizerGroup, "moment_dtype", "TYPE", "Type of the optimizer's moments [fp32]"},
    {kOptimizerGroup, "fused_gradient_accumulation", "", "GEMMs add to the gradient buffer [true]"},
    {kOptimizerGroup, "reduce_scatter_with_fp32_accumulation", "",
     "Send 16-bit gradients by all-to-all and sum them in fp32"},
    {kOptimizerGroup, "calculate_per_token_loss", "",
     "Divide gradients by the batch's tokens that count"},

    {kExpertGroup, "expert_dispatch", "KIND", "all_to_all or deduplicated [all_to_all]"},
    {kExpertGroup, "expert_overlap", "",
     "Overlap the expert exchange with another micro-batch's compute"},
    {kExpertGroup, "grouped_gemm", "", "One GEMM for all experts of a rank [true]"},
    {kExpertGroup, "expert_imbalance", "X",
     "Tokens of the busiest expert rank, relative to the mean [1]"},
    {kExpertGroup, "expert_skew", "S", "Popularity of the i-th expert falls as i^-S [0]"},

    {kRecomputeGroup, "recompute_operations", "NAMES",
     "Operations to recompute as well, or Megatron-Core's modules: mlp, moe, moe_act, layernorm, "
     "mla_up_proj, shared_experts, core_attn; commas between"},
    {kRecomputeGroup, "recompute_stops_early", "",
     "Stop recompute after the last tensor needed, as PyTorch 2.1 does; false: reentrant [true]"},
    {kRecomputeGroup, "saved_linear_inputs", "TYPE",
     "Save inputs of linear layers for backward as fp8 or e5m6 [as_computed]"},
    {kRecomputeGroup, "saved_activation_inputs", "TYPE",
     "Save inputs of activation functions (SwiGLU) as fp8 or e5m6 [as_computed]"},
    {kRecomputeGroup, "saved_attention_outputs", "TYPE",
     "Save outputs of attention as fp8 or e5m6 [as_computed]"},
}};

inline constexpr std::array<FieldText, 30> kLayoutTexts = {{
    {kDegreeGroup, "tp", "N", "Tensor parallel degree [1]"},
    {kDegreeGroup, "cp", "N", "Context parallel degree [1]"},
    {kDegreeGroup, "pp", "N", "Pipeline parallel degree: stages [1]"},
    {kDegreeGroup, "ep", "N", "Expert parallel degree [1]"},
    {kDegreeGroup, "etp", "N", "Tensor parallel degree of the experts [--tp]"},
    {kDegreeGroup, "dp_shard", "N",
     "Data parallel degree that shards states [GPUs over the other degrees]"},
    {kDegreeGroup, "dp_replicate", "N", "Data parallel replicas, the outer axis of HSDP [1]"},
    {kDegreeGroup, "micro_batch_size", "N", "Sequences of a micro-batch on a rank [1]"},
    {kDegreeGroup, "cp_kind", "KIND", "Context parallel by ring, all_gather or ulysses [ring]"},
    {kDegreeGroup, "order", "AXES",
     "Rank order, fastest axis first [tp-cp-ep-dp_shard-dp_replicate-pp]"},

    {kPipelineGroup, "schedule", "KIND",
     "one_f_one_b, gpipe, looped_bfs, zb_h1, zb_h2, zb_v, dualpipe or dualpipe_v [one_f_one_b]"},
    {kPipelineGroup, "vpp", "N",
     "Model chunks of a stage, for one_f_one_b and looped_bfs [1]; zb_v and dualpipe_v have two of "
     "their own"},
    {kPipelineGroup, "first_stage_layers", "N", "Layers of the first stage [an even share]"},
    {kPipelineGroup, "last_stage_layers", "N", "Layers of the last stage [an even share]"},

    {kShardingGroup, "zero_stage", "0-3",
     "ZeRO: 1 shards optimizer states, 2 gradients too, 3 weights too [the engine's]"},
    {kShardingGroup, "sequence_parallel", "",
     "Shard activations between tensor-parallel regions [true with --tp]"},
    {kShardingGroup, "reshard_after_forward", "",
     "ZeRO-3: free gathered weights after forward [true]; N: a rank keeps 1 / N of them, which N "
     "ranks gather (FSDP2's integer, DeepSpeed's hpZ)"},
    {kShardingGroup, "reduce_every_microbatch", "",
     "ZeRO-2 and 3: reduce gradients after each micro-batch [the engine's]"},
    {kShardingGroup, "outer_shards_optimizer", "",
     "HFSDP: shard optimizer states over both data-parallel axes"},
    {kShardingGroup, "store_param_remainders", "",
     "Keep fp32 main weights as the 16 bits that bf16 weights lack"},
    {kShardingGroup, "fp32_gradients", "", "Keep and reduce gradients in fp32 [the engine's]"},
    {kShardingGroup, "overlap_grad_reduce", "", "Overlap gradient reduction with backward [true]"},
    {kShardingGroup, "overlap_param_gather", "", "Overlap parameter gathers with forward [true]"},
    {kShardingGroup, "double_buffer", "", "Megatron-FSDP: two persistent unit buffers"},
    {kShardingGroup, "ddp_bucket_size", "N",
     "Megatron's DDP, PyTorch's: elements of a bucket, 0: one for each tensor [40 M, or 1 M for "
     "each data-parallel rank; 25 MiB]"},
    {kShardingGroup, "ddp_pad_buckets_for_high_nccl_busbw", "",
     "Megatron's DDP: pad buckets to multiples of 65,536 elements"},

    {kRecomputeGroup, "recompute", "KIND", "none, selective or full [none]"},
    {kRecomputeGroup, "recompute_interval", "N", "Full recompute of every N-th layer only [1]"},
    {kRecomputeGroup, "offload_optimizer", "", "Keep optimizer states in host memory"},
    {kRecomputeGroup, "offload_activations", "", "Keep activations in host memory until backward"},
}};
static_assert(kJobTexts.size() == field_count<JobSpec>(), "give the new field a flag");
static_assert(kLayoutTexts.size() == field_count<Layout>(), "give the new field a flag");

}  // namespace shardwise
