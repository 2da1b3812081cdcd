#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_opt(ConfigFile& file) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"hidden_size"});
  c.num_hidden_layers = file.needed("num_hidden_layers", {"num_hidden_layers"}, kMaxLayers);
  c.num_attention_heads = file.needed("num_attention_heads", {"num_attention_heads"}, kMaxHeads);
  c.intermediate_size = file.needed("intermediate_size", {"ffn_dim"});
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  c.max_position_embeddings = file.needed("max_position_embeddings", {"max_position_embeddings"});
  c.position_table_rows = c.max_position_embeddings + 2;  // OPTLearnedPositionalEmbedding's offset
  c.embedding_size = file.size("embedding_size", {"word_embed_proj_dim"}, 0);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);
  c.activation = file.activation({"activation_function"}, Activation::relu);

  const bool bias = file.flag("enable_bias", true);
  const bool affine = file.flag("layer_norm_elementwise_affine", true);
  const bool before = file.flag("do_layer_norm_before", true);
  c.norm = NormKind::layernorm;
  c.norm_weight = c.norm_bias = affine;
  c.norm_placement = before ? NormPlacement::before : NormPlacement::after;
  c.final_norm = before && !file.flag("_remove_final_layer_norm", false);
  c.qkv_bias = c.attention_output_bias = c.mlp_bias = bias;
  c.gated_mlp = false;
  c.position_embedding = PositionEmbedding::learned;

  c.names.token_embedding = "model.decoder.embed_tokens";
  c.names.position_embedding = "model.decoder.embed_positions";
  c.names.project_in = "model.decoder.project_in";
  c.names.project_out = "model.decoder.project_out";
  c.names.final_norm = "model.decoder.final_layer_norm";
  BlockNames& block = c.names.block;
  block.prefix = "model.decoder.layers.{layer}.";
  block.attention_norm = block.attention_output_norm = "self_attn_layer_norm";
  block.mlp_norm = block.mlp_output_norm = "final_layer_norm";
  block.attention.o = "self_attn.out_proj";
  block.mlp_prefix = "";
  block.mlp.up = "fc1";
  block.mlp.down = "fc2";
  return c;
}

}  // namespace shardwise
