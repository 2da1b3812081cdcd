#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_falcon(ConfigFile& file) {
  TransformerConfig c;
  // The second names are those of the files published before transformers had the family.
  c.hidden_size = file.needed("hidden_size", {"hidden_size", "n_embed"});
  c.num_hidden_layers =
      file.needed("num_hidden_layers", {"num_hidden_layers", "n_layer"}, kMaxLayers);
  c.num_attention_heads =
      file.needed("num_attention_heads", {"num_attention_heads", "n_head"}, kMaxHeads);
  c.intermediate_size = file.size("intermediate_size", {"ffn_hidden_size"}, 0);
  if (c.intermediate_size == 0) c.intermediate_size = 4 * c.hidden_size;
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  c.max_position_embeddings =
      file.size("max_position_embeddings", {"max_position_embeddings"}, 2048);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);
  c.activation = file.activation({"activation"}, Activation::gelu);

  const bool grouped = file.flag("new_decoder_architecture", false);
  if (grouped) {
    c.num_key_value_heads =
        file.size("num_key_value_heads", {"num_kv_heads", "n_head_kv"}, 0, kMaxHeads);
  } else {
    c.num_key_value_heads = file.flag("multi_query", true) ? 1 : 0;
  }

  const std::int64_t norms =
      file.size("num_ln_in_parallel_attn", {"num_ln_in_parallel_attn"}, grouped ? 2 : 1, 2);
  c.parallel_residual = file.flag("parallel_attn", true);
  c.shared_parallel_norm = c.parallel_residual && norms != 2;
  const bool bias = file.flag("bias", false);
  c.qkv_bias = c.attention_output_bias = c.mlp_bias = bias;
  c.norm = NormKind::layernorm;
  c.norm_bias = true;
  c.fused_qkv = true;
  c.gated_mlp = false;
  c.position_embedding =
      file.flag("alibi", false) ? PositionEmbedding::alibi : PositionEmbedding::rope;

  c.names.token_embedding = "transformer.word_embeddings";
  c.names.final_norm = "transformer.ln_f";
  BlockNames& block = c.names.block;
  block.prefix = "transformer.h.{layer}.";
  if (c.parallel_residual && norms == 2) {
    block.attention_norm = "ln_attn";
    block.mlp_norm = "ln_mlp";
  }
  block.attention.qkv = "self_attention.query_key_value";
  block.attention.o = "self_attention.dense";
  block.mlp.up = "dense_h_to_4h";
  block.mlp.down = "dense_4h_to_h";
  return c;
}

}  // namespace shardwise
