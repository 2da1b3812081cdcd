#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_bert(ConfigFile& file) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"hidden_size"});
  c.num_hidden_layers = file.needed("num_hidden_layers", {"num_hidden_layers"}, kMaxLayers);
  c.num_attention_heads = file.needed("num_attention_heads", {"num_attention_heads"}, kMaxHeads);
  c.intermediate_size = file.needed("intermediate_size", {"intermediate_size"});
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  c.type_vocab_size = file.size("type_vocab_size", {"type_vocab_size"}, 2);
  c.max_position_embeddings = file.needed("max_position_embeddings", {"max_position_embeddings"});
  file.refuse_flag("add_cross_attention");
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);
  c.activation = file.activation({"hidden_act"}, Activation::gelu);

  c.causal = false;
  c.norm = NormKind::layernorm;
  c.norm_placement = NormPlacement::after;
  c.norm_bias = c.qkv_bias = c.attention_output_bias = c.mlp_bias = true;
  c.embedding_norm = true;
  c.final_norm = false;
  c.gated_mlp = false;
  c.position_embedding = PositionEmbedding::learned;
  // What BERT is trained with, and what its checkpoints hold (BertForPreTraining).
  c.pretraining_heads = true;

  c.names.token_embedding = "bert.embeddings.word_embeddings";
  c.names.position_embedding = "bert.embeddings.position_embeddings";
  c.names.token_type_embedding = "bert.embeddings.token_type_embeddings";
  c.names.embedding_norm = "bert.embeddings.LayerNorm";
  c.names.lm_head = "cls.predictions";
  BlockNames& block = c.names.block;
  block.prefix = "bert.encoder.layer.{layer}.";
  block.attention_output_norm = "attention.output.LayerNorm";
  block.mlp_output_norm = "output.LayerNorm";
  block.attention.q = "attention.self.query";
  block.attention.k = "attention.self.key";
  block.attention.v = "attention.self.value";
  block.attention.o = "attention.output.dense";
  block.mlp_prefix = "";
  block.mlp.up = "intermediate.dense";
  block.mlp.down = "output.dense";
  return c;
}

}  // namespace shardwise
