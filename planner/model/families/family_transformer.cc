#include <algorithm>

#include "planner/model/families/families.h"

namespace shardwise {
namespace {

void read_transformer_experts(ConfigFile& file, TransformerConfig& c) {
  if (!file.has("num_experts")) return;
  MoeConfig moe;
  moe.num_experts = file.needed("num_experts", {"num_experts"}, kMaxExperts);
  moe.num_experts_per_tok =
      file.needed("num_experts_per_tok", {"num_experts_per_tok"}, kMaxExperts);
  moe.intermediate_size =
      file.size("moe_intermediate_size", {"moe_intermediate_size"}, c.intermediate_size);
  moe.shared_intermediate_size =
      file.count("shared_intermediate_size", {"shared_intermediate_size"}, 0);
  const std::int64_t first_dense =
      file.count("first_dense_layers", {"first_dense_layers"}, 0, kMaxLayers);
  const std::int64_t frequency = std::max<std::int64_t>(
      1, file.size("moe_layer_frequency", {"moe_layer_frequency"}, 1, kMaxLayers));
  moe.dense_layers = dense_layers_of(c.num_hidden_layers, first_dense, frequency);
  c.moe = std::move(moe);
}

void read_transformer_latent_attention(ConfigFile& file, TransformerConfig& c) {
  if (!file.has("kv_lora_rank")) return;
  c.mla = MlaConfig{
      .q_lora_rank = file.count("q_lora_rank", {"q_lora_rank"}, 0),
      .kv_lora_rank = file.needed("kv_lora_rank", {"kv_lora_rank"}, kMaxSize),
      .qk_nope_head_dim = file.needed("qk_nope_head_dim", {"qk_nope_head_dim"}, kMaxSize),
      .qk_rope_head_dim = file.needed("qk_rope_head_dim", {"qk_rope_head_dim"}, kMaxSize),
      .v_head_dim = file.needed("v_head_dim", {"v_head_dim"}, kMaxSize),
  };
}

void read_norms_and_biases(ConfigFile& file, TransformerConfig& c) {
  ObjectReader& reader = file.reader();
  const bool layernorm = reader.choice_or("norm", 0, {"rmsnorm", "layernorm"}) == 1;
  c.norm = layernorm ? NormKind::layernorm : NormKind::rmsnorm;
  c.norm_placement = static_cast<NormPlacement>(
      reader.choice_or("norm_placement", 0, {"before", "after", "both"}));
  c.final_norm = c.norm_placement != NormPlacement::after;
  c.qk_norm = file.flag("qk_norm", false);
  c.parallel_residual = file.flag("parallel_residual", false);

  const bool bias = file.flag("bias", false);
  c.norm_bias = file.flag("norm_bias", bias && layernorm);
  c.qkv_bias = file.flag("qkv_bias", bias);
  c.attention_output_bias = file.flag("attention_output_bias", bias);
  c.mlp_bias = file.flag("mlp_bias", bias);
}

}  // namespace

TransformerConfig read_transformer(ConfigFile& file) {
  ObjectReader& reader = file.reader();
  reader.require_schema("shardwise.model/1");
  reader.has("model_type");

  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"hidden_size"}, kMaxSize);
  c.num_hidden_layers = file.needed("num_hidden_layers", {"num_hidden_layers"}, kMaxLayers);
  c.num_attention_heads = file.needed("num_attention_heads", {"num_attention_heads"}, kMaxHeads);
  c.num_key_value_heads = file.size("num_key_value_heads", {"num_key_value_heads"}, 0, kMaxHeads);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.intermediate_size = file.needed("intermediate_size", {"intermediate_size"}, kMaxSize);
  c.vocab_size = file.needed("vocab_size", {"vocab_size"}, kMaxSize);
  c.max_position_embeddings =
      file.needed("max_position_embeddings", {"max_position_embeddings"}, kMaxSize);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", false);
  c.causal = file.flag("causal", true);
  c.num_encoder_layers = file.count("num_encoder_layers", {"num_encoder_layers"}, 0, kMaxLayers);
  c.num_mtp_layers = file.count("num_mtp_layers", {"num_mtp_layers"}, 0, kMaxLayers);

  read_norms_and_biases(file, c);
  c.gated_mlp = file.flag("gated_mlp", true);
  c.activation =
      static_cast<Activation>(reader.choice_or("activation", 2, {"gelu", "relu", "silu"}));
  c.fused_qkv = file.flag("fused_qkv", false);
  c.fused_gate_up = file.flag("fused_gate_up", false);

  c.position_embedding = static_cast<PositionEmbedding>(
      reader.choice_or("position_embedding", 2, {"none", "learned", "rope", "alibi", "relative"}));
  c.rotary_dim = file.count("rotary_dim", {"rotary_dim"}, 0);
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 0);
  c.windows = file.windows(c.num_hidden_layers, window, "", [](std::int64_t) { return true; });

  read_transformer_experts(file, c);
  read_transformer_latent_attention(file, c);

  reader.reject_unknown();
  return c;
}

}  // namespace shardwise
