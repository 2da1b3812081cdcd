#include "planner/score/rows/row_flags.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace shardwise {
namespace {

struct UnreadFlag {
  std::string_view name;
  std::string_view why;
};

/// Flags of published rows that no rule reads. Those without an effect on what is compared are here
/// with the fact that stands for them, the others with what is missing.
constexpr auto kUnread = std::to_array<UnreadFlag>({
    {"asym_pp_embed_loss", "uneven stages of this kind are not read"},
    {"attention_bias", "biases follow from the stated count of parameters"},
    {"attention_dropout", "there is one dropout, that of hidden states"},
    {"attention_sinks", "a term of the softmax: no bytes, no seconds"},
    {"attention_softmax_in_fp32", "scores that are not fused have a softmax in fp32"},
    {"bucket_cap_mb", "sizes of buckets are the engine's own"},
    {"comm_overlap", "follows from the schedule"},
    {"delay_wgrad_compute", "deferred weight gradients beside the exchange are not modelled"},
    {"expert_bias", "biases follow from the stated count of parameters"},
    {"experts", "names the kernels of experts, which have no curve of their own"},
    {"fake_balanced_gate", "experts are balanced unless told otherwise"},
    {"force_balanced_moe", "experts are balanced unless told otherwise"},
    {"fp8_output_projection", "outputs are multiplied as other products are"},
    {"fp8_param_gather", "performance recipes gather 8 bits in any case"},
    {"hierarchical_context_parallel_sizes", "context parallelism of two levels is not modelled"},
    {"layernorm_sm_margin", "multiprocessors that kernels leave free are not modelled"},
    {"layers_per_stage", "the engine of these rows is unknown"},
    {"limit_all_gathers", "FSDP1's gathers are limited"},
    {"local_batch", "the micro-batch is batch.micro"},
    {"lora_dropout", "adapters are taken to have dropout"},
    {"lora_r", "the adapters' own memory and time are left out"},
    {"moe_expert_capacity_factor", "no tokens are dropped"},
    {"moe_expert_rank_capacity_factor", "no tokens are dropped"},
    {"moe_paged_stash", "where activations of experts are kept is not modelled"},
    {"moe_permute_fusion", "permutations are one kernel each"},
    {"moe_router_dtype", "routers work in fp32"},
    {"multipack", "attention over documents is not modelled"},
    {"no_bias_gelu_fusion", "Transformer Engine has kernels of its own"},
    {"node_power_dc_w", "a note on the power that was drawn"},
    {"optimizer_cuda_graph", "the host of the optimizer is not the slower side"},
    {"overlap_moe_expert_parallel_comm",
     "one name of moe_a2a_overlap; the times of these rows are not representative"},
    {"overlap_param_gather_with_optimizer_step", "gathers beside the optimizer are not modelled"},
    {"packed", "all positions are counted; attention over documents is not modelled"},
    {"padding_free", "attention over documents is not modelled"},
    {"pipeline_model_parallel_layout", "uneven stages of this kind are not read"},
    {"pipeline_scheduling", "the schedule is parallel.pp_schedule"},
    {"power", "a note on the power that was drawn"},
    {"pp_layout", "uneven stages of this kind are not read"},
    {"rank_order", "changes the order of ranks, which is not read"},
    {"recipe_config", "names the recipe that the other flags are of"},
    {"scatter_gather_opt", "pipeline messages are cut over tp and gathered"},
    {"sliding_window", "what kernels with sinks save in a window is not known"},
    {"sliding_window_every", "what kernels with sinks save in a window is not known"},
    {"swa", "the layers that have a window are not stated"},
    {"tp_linear_async_communication", "the engine of these rows is unknown"},
    {"tp_mode", "reduce-scatter follows from sequence parallelism"},
    {"trainable_params", "the adapters' own memory and time are left out"},
    {"use_gradient_bucket", "Megatron-DeepSpeed reduces by buckets as DeepSpeed does"},
    {"use_tp_pp_dp_mapping", "changes the order of ranks; one node has all of them"},
    {"vboost", "clocks that an administrator raised are not modelled"},
});

constexpr auto kRead = std::to_array<std::string_view>({
    "activation_cpu_offload",
    "async_tp",
    "attention",
    "attention_backend",
    "calculate_per_token_loss",
    "compile",
    "cp_comm",
    "cp_comm_type",
    "cpu_offloading_num_layers",
    "cross_entropy",
    "cross_entropy_fusion",
    "cross_entropy_loss_fusion",
    "cuda_graph_impl",
    "cuda_graph_scope",
    "defer_embedding_wgrad_compute",
    "deterministic_mode",
    "expert_tensor_parallel_size",
    "flash_attention",
    "float8",
    "fp8_activation_input_store",
    "fp8_attention",
    "fsdp_no_sync",
    "fused_ce",
    "fused_optimizer",
    "gradient_accumulation_fusion",
    "grouped_gemm",
    "hidden_dropout",
    "kernels",
    "liger_kernel",
    "lora_rank",
    "lora_targets",
    "loss",
    "moe_a2a_overlap",
    "moe_flex_dispatcher_backend",
    "moe_grouped_gemm",
    "no_gradient_accumulation_fusion",
    "optimizer",
    "optimizer_offload",
    "overlap_grad_reduce",
    "overlap_param_gather",
    "pack_sample_into_one",
    "parallel_block",
    "step",
    "time_representative",
    "tp_comm_overlap",
    "transformer_impl",
});

}  // namespace

std::string_view why_unread(std::string_view flag) {
  const auto found = std::ranges::find(kUnread, flag, &UnreadFlag::name);
  return found == kUnread.end() ? "not known" : found->why;
}

bool is_read(std::string_view flag) { return std::ranges::find(kRead, flag) != kRead.end(); }

std::vector<std::string_view> read_flags() { return {kRead.begin(), kRead.end()}; }

std::vector<FlagUnread> unread_flags(std::span<const Row> rows) {
  std::map<std::string, std::size_t> counts;
  for (const Row& row : rows) {
    for (const JsonMember& flag : row.flags) {
      const bool stated = flag.value.kind != JsonValue::Kind::null;
      if (stated && !is_read(flag.key)) ++counts[flag.key];
    }
  }
  std::vector<FlagUnread> unread;
  for (const auto& [flag, count] : counts) {
    unread.push_back({flag, std::string(why_unread(flag)), count});
  }
  std::ranges::stable_sort(unread, std::greater(), &FlagUnread::rows);
  return unread;
}

}  // namespace shardwise
