#include <utility>

#include "planner/model/families.h"

namespace shardwise {
namespace {

struct DeepseekDefaults {
  std::int64_t n_routed_experts;
  std::int64_t n_shared_experts;
  std::int64_t num_experts_per_tok;  // 0 = must be given
  std::int64_t moe_intermediate_size;
  std::int64_t first_k_dense_replace;
};

void read_latent_attention(ConfigFile& file, TransformerConfig& config) {
  config.mla = MlaConfig{
      .q_lora_rank = file.count("q_lora_rank", {"q_lora_rank"}, 1536),
      .kv_lora_rank = file.size("kv_lora_rank", {"kv_lora_rank"}, 512),
      .qk_nope_head_dim = file.count("qk_nope_head_dim", {"qk_nope_head_dim"}, 128),
      .qk_rope_head_dim = file.size("qk_rope_head_dim", {"qk_rope_head_dim"}, 64),
      .v_head_dim = file.size("v_head_dim", {"v_head_dim"}, 128),
  };
  config.qkv_bias = config.attention_output_bias = file.flag("attention_bias", false);
}

/// moe_layer_freq is a key of the published files that DeepSeek's own code reads and transformers
/// does not: with the published value 1 both agree.
MoeConfig read_experts(ConfigFile& file, const TransformerConfig& config,
                       const DeepseekDefaults& defaults) {
  MoeConfig moe;
  moe.num_experts =
      file.size("num_experts", {"n_routed_experts"}, defaults.n_routed_experts, kMaxExperts);
  moe.num_experts_per_tok =
      defaults.num_experts_per_tok > 0
          ? file.size("num_experts_per_tok", {"num_experts_per_tok"}, defaults.num_experts_per_tok,
                      kMaxExperts)
          : file.required("num_experts_per_tok", "num_experts_per_tok", kMaxExperts);
  moe.intermediate_size =
      file.size("moe_intermediate_size", {"moe_intermediate_size"}, defaults.moe_intermediate_size);
  const std::int64_t shared = file.count("shared_intermediate_size", {"n_shared_experts"},
                                         defaults.n_shared_experts, kMaxExperts);
  moe.shared_intermediate_size = shared * moe.intermediate_size;
  const std::int64_t first_dense = file.count("first_k_dense_replace", {"first_k_dense_replace"},
                                              defaults.first_k_dense_replace, kMaxLayers);
  const std::int64_t frequency = file.size("moe_layer_freq", {"moe_layer_freq"}, 1, kMaxLayers);
  if (frequency > 0 && config.num_hidden_layers <= kMaxLayers) {
    moe.dense_layers = dense_layers_of(config.num_hidden_layers, first_dense, frequency);
  }
  return moe;
}

}  // namespace

TransformerConfig read_deepseek_v2(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 4096,
                                            .intermediate_size = 11008,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 0,
                                            .vocab_size = 32000,
                                            .max_position_embeddings = 2048});
  read_latent_attention(file, c);
  c.moe = read_experts(file, c,
                       {.n_routed_experts = 64,
                        .n_shared_experts = 2,
                        .num_experts_per_tok = 0,
                        .moe_intermediate_size = 1407,
                        .first_k_dense_replace = 0});
  return c;
}

TransformerConfig read_deepseek_v3(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 7168,
                                            .intermediate_size = 18432,
                                            .num_hidden_layers = 61,
                                            .num_attention_heads = 128,
                                            .num_key_value_heads = 128,
                                            .vocab_size = 129280,
                                            .max_position_embeddings = 4096});
  read_latent_attention(file, c);
  MoeConfig moe = read_experts(file, c,
                               {.n_routed_experts = 256,
                                .n_shared_experts = 1,
                                .num_experts_per_tok = 8,
                                .moe_intermediate_size = 2048,
                                .first_k_dense_replace = 3});
  moe.correction_bias = true;
  c.moe = std::move(moe);
  // In the checkpoint and in DeepSeek's training; transformers leaves these layers out.
  c.num_mtp_layers = file.count("num_mtp_layers", {"num_nextn_predict_layers"}, 0, kMaxLayers);
  return c;
}

}  // namespace shardwise
