#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_bloom(ConfigFile& file) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"hidden_size", "n_embed"});
  c.num_hidden_layers =
      file.needed("num_hidden_layers", {"n_layer", "num_hidden_layers"}, kMaxLayers);
  c.num_attention_heads =
      file.needed("num_attention_heads", {"n_head", "num_attention_heads"}, kMaxHeads);
  c.intermediate_size = 4 * c.hidden_size;
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  // ALiBi has no table of positions; published files state the length of training, if anything.
  c.max_position_embeddings = file.size("max_position_embeddings", {"seq_length"}, 2048);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);

  c.norm = NormKind::layernorm;
  c.norm_bias = c.qkv_bias = c.attention_output_bias = c.mlp_bias = true;
  c.embedding_norm = true;
  c.fused_qkv = true;
  c.gated_mlp = false;
  c.activation = Activation::gelu;
  c.position_embedding = PositionEmbedding::alibi;

  c.names.token_embedding = "transformer.word_embeddings";
  c.names.embedding_norm = "transformer.word_embeddings_layernorm";
  c.names.final_norm = "transformer.ln_f";
  BlockNames& block = c.names.block;
  block.prefix = "transformer.h.{layer}.";
  block.attention.qkv = "self_attention.query_key_value";
  block.attention.o = "self_attention.dense";
  block.mlp.up = "dense_h_to_4h";
  block.mlp.down = "dense_4h_to_h";
  return c;
}

}  // namespace shardwise
