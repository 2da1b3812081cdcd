#include "planner/model/families/families.h"

namespace shardwise {
namespace {

/// "attn_config": {"alibi": true}. Without ALiBi, learned positions unless they are switched off.
PositionEmbedding read_positions(ConfigFile& file) {
  bool alibi = true;
  if (file.has("attn_config")) {
    if (const JsonValue* attention = file.reader().object("attn_config")) {
      ObjectReader nested = file.reader().nested("attn_config", *attention);
      if (!nested.has("alibi")) file.assume("attn_config/alibi", "true");
      alibi = nested.boolean_or("alibi", true);
      if (nested.boolean_or("qk_ln", false)) {
        nested.fail("qk_ln", "true adds norms that are not modelled here",
                    "describe the model by hand (docs/models.md)");
      }
    }
  } else {
    file.assume("attn_config", "with alibi");
  }
  if (alibi) return PositionEmbedding::alibi;
  return file.flag("learned_pos_emb", true) ? PositionEmbedding::learned : PositionEmbedding::none;
}

}  // namespace

// transformers builds the family without biases and with ALiBi, whatever the file says. Where the
// file says otherwise we build what llm-foundry trains: its table of parameter counts (README of
// scripts/train/benchmarking at 8c8dd48f7216) is with biases and learned positions.
TransformerConfig read_mpt(ConfigFile& file) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"d_model", "hidden_size"});
  c.num_hidden_layers =
      file.needed("num_hidden_layers", {"n_layers", "num_hidden_layers"}, kMaxLayers);
  c.num_attention_heads =
      file.needed("num_attention_heads", {"n_heads", "num_attention_heads"}, kMaxHeads);
  constexpr std::int64_t kMaxRatio = 1000;
  c.intermediate_size =
      c.hidden_size * file.size("expansion_ratio", {"expansion_ratio"}, 4, kMaxRatio);
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  c.max_position_embeddings = file.size("max_position_embeddings", {"max_seq_len"}, 2048);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);

  const bool bias = !file.flag("no_bias", true);
  c.norm = NormKind::layernorm;
  c.norm_bias = c.qkv_bias = c.attention_output_bias = c.mlp_bias = bias;
  c.fused_qkv = true;
  c.gated_mlp = false;
  c.activation = Activation::gelu;
  c.position_embedding = read_positions(file);

  c.names.token_embedding = "transformer.wte";
  c.names.position_embedding = "transformer.wpe";
  c.names.final_norm = "transformer.norm_f";
  BlockNames& block = c.names.block;
  block.prefix = "transformer.blocks.{layer}.";
  block.attention_norm = "norm_1";
  block.mlp_norm = "norm_2";
  block.attention.qkv = "attn.Wqkv";
  block.attention.o = "attn.out_proj";
  block.mlp_prefix = "ffn.";
  return c;
}

}  // namespace shardwise
