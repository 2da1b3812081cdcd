#include <utility>

#include "planner/model/families/families.h"

namespace shardwise {
namespace {

struct DeepseekDefaults {
  std::int64_t n_shared_experts;
  std::int64_t first_k_dense_replace;
};

void read_deepseek_latent_attention(ConfigFile& file, TransformerConfig& config) {
  config.mla = MlaConfig{
      .q_lora_rank = file.count("q_lora_rank", {"q_lora_rank"}, 1536),
      .kv_lora_rank = file.needed("kv_lora_rank", {"kv_lora_rank"}),
      .qk_nope_head_dim = file.count("qk_nope_head_dim", {"qk_nope_head_dim"}, 128),
      .qk_rope_head_dim = file.needed("qk_rope_head_dim", {"qk_rope_head_dim"}),
      .v_head_dim = file.needed("v_head_dim", {"v_head_dim"}),
  };
  // Experts have the bias in transformers 4 and not in 5; no published model has it.
  file.refuse_flag("mlp_bias");
  config.qkv_bias = config.attention_output_bias = file.flag("attention_bias", false);
}

/// moe_layer_freq is a key of the published files that DeepSeek's own code reads and transformers
/// does not: with the published value 1 both agree.
MoeConfig read_deepseek_experts(ConfigFile& file, const TransformerConfig& config,
                                const DeepseekDefaults& defaults) {
  MoeConfig moe;
  moe.num_experts = needed_experts(file, "n_routed_experts");
  moe.num_experts_per_tok =
      file.needed("num_experts_per_tok", {"num_experts_per_tok"}, kMaxExperts);
  moe.intermediate_size = file.needed("moe_intermediate_size", {"moe_intermediate_size"});
  const std::int64_t shared = file.count("shared_intermediate_size", {"n_shared_experts"},
                                         defaults.n_shared_experts, kMaxExperts);
  moe.shared_intermediate_size = shared * moe.intermediate_size;
  const std::int64_t first_dense = file.count("first_k_dense_replace", {"first_k_dense_replace"},
                                              defaults.first_k_dense_replace, kMaxLayers);
  const std::int64_t frequency =
      file.has("moe_layer_freq") ? file.size("moe_layer_freq", {"moe_layer_freq"}, 1, kMaxLayers)
                                 : 1;
  if (frequency > 0 && config.num_hidden_layers <= kMaxLayers) {
    moe.dense_layers = dense_layers_of(config.num_hidden_layers, first_dense, frequency);
  }
  return moe;
}

}  // namespace

TransformerConfig read_deepseek_v2(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = kNoSuchKey, .max_position_embeddings = 2048});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  read_deepseek_latent_attention(file, c);
  c.moe = read_deepseek_experts(file, c, {.n_shared_experts = 2, .first_k_dense_replace = 0});
  c.moe->router = grouped_router_numerics(file, {.norm_topk_prob = false});
  // "greedy" chooses among all experts, whatever n_group says.
  if (file.text("topk_method", "greedy") == "greedy") {
    c.moe->router.n_group = c.moe->router.topk_group = 1;
  }
  return c;
}

TransformerConfig read_deepseek_v3(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = kNoSuchKey, .max_position_embeddings = 4096});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  read_deepseek_latent_attention(file, c);
  MoeConfig moe =
      read_deepseek_experts(file, c, {.n_shared_experts = 1, .first_k_dense_replace = 3});
  moe.correction_bias = true;
  moe.router = grouped_router_numerics(
      file, {.sigmoid = true, .n_group = 8, .topk_group = 4, .routed_scaling_factor = 2.5});
  c.moe = std::move(moe);
  // In the checkpoint and in DeepSeek's training; transformers leaves these layers out.
  c.num_mtp_layers = file.count("num_mtp_layers", {"num_nextn_predict_layers"}, 0, kMaxLayers);
  return c;
}

}  // namespace shardwise
