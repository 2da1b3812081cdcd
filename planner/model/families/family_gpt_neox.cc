#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_gpt_neox(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = kNoSuchKey, .max_position_embeddings = 2048});
  c.activation = file.activation({"hidden_act"}, Activation::gelu);
  c.parallel_residual = file.flag("use_parallel_residual", true);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", true);
  const double rotated = rotated_share(file, "rotary_pct", 0.25);
  if (c.num_attention_heads > 0) {
    const std::int64_t head_dim = c.hidden_size / c.num_attention_heads;
    c.rotary_dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * rotated);
    if (c.rotary_dim == 0) c.position_embedding = PositionEmbedding::none;
  }

  c.norm = NormKind::layernorm;
  c.norm_bias = c.mlp_bias = true;
  c.fused_qkv = true;
  c.gated_mlp = false;

  c.names.token_embedding = "gpt_neox.embed_in";
  c.names.final_norm = "gpt_neox.final_layer_norm";
  c.names.lm_head = "embed_out";
  BlockNames& block = c.names.block;
  block.prefix = "gpt_neox.layers.{layer}.";
  block.attention.qkv = "attention.query_key_value";
  block.attention.o = "attention.dense";
  block.mlp.up = "dense_h_to_4h";
  block.mlp.down = "dense_4h_to_h";
  return c;
}

}  // namespace shardwise
