#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_gpt2(ConfigFile& file) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"n_embd", "hidden_size"});
  c.num_hidden_layers =
      file.needed("num_hidden_layers", {"n_layer", "num_hidden_layers"}, kMaxLayers);
  c.num_attention_heads =
      file.needed("num_attention_heads", {"n_head", "num_attention_heads"}, kMaxHeads);
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  c.max_position_embeddings =
      file.needed("max_position_embeddings", {"n_positions", "max_position_embeddings"});
  c.intermediate_size = file.size("intermediate_size", {"n_inner"}, 0);
  if (c.intermediate_size == 0) c.intermediate_size = 4 * c.hidden_size;
  file.refuse_flag("add_cross_attention");
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);
  c.activation = file.activation({"activation_function"}, Activation::gelu);
  c.numerics.activation =
      activation_function(file.reader().string_or("activation_function", "gelu_new"));
  c.numerics.norm_epsilon = file.number("layer_norm_epsilon", 1e-5, 0, 1);

  c.norm = NormKind::layernorm;
  c.norm_bias = c.qkv_bias = c.attention_output_bias = c.mlp_bias = true;
  c.fused_qkv = c.transposed_linear = true;
  c.gated_mlp = false;
  c.position_embedding = PositionEmbedding::learned;

  c.names.token_embedding = "transformer.wte";
  c.names.position_embedding = "transformer.wpe";
  c.names.final_norm = "transformer.ln_f";
  BlockNames& block = c.names.block;
  block.prefix = "transformer.h.{layer}.";
  block.attention_norm = "ln_1";
  block.mlp_norm = "ln_2";
  block.attention.qkv = "attn.c_attn";
  block.attention.o = "attn.c_proj";
  block.mlp.up = "c_fc";
  block.mlp.down = "c_proj";
  return c;
}

}  // namespace shardwise
