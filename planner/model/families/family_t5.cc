#include <string>
#include <string_view>

#include "planner/model/families/families.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

AttentionNames t5_attention(const std::string& module) {
  AttentionNames names;
  names.q = module + ".q";
  names.k = module + ".k";
  names.v = module + ".v";
  names.o = module + ".o";
  names.relative_bias = module + ".relative_attention_bias";
  return names;
}

BlockNames block_names(const std::string& stack, const std::string& mlp_layer, bool gated) {
  BlockNames block;
  block.prefix = stack + ".block.{layer}.";
  block.attention_norm = "layer.0.layer_norm";
  block.attention = t5_attention("layer.0.SelfAttention");
  block.cross_attention_norm = "layer.1.layer_norm";
  block.cross_attention = t5_attention("layer.1.EncDecAttention");
  block.mlp_norm = mlp_layer + ".layer_norm";
  block.mlp_prefix = mlp_layer + ".DenseReluDense.";
  block.mlp = {.gate = "wi_0", .up = gated ? "wi_1" : "wi", .gate_up = "", .down = "wo"};
  return block;
}

/// "relu" or "gated-gelu": the activation, and whether the feed-forward is gated.
void read_feed_forward(ConfigFile& file, TransformerConfig& config) {
  constexpr std::string_view kKey = "feed_forward_proj";
  const std::string written = file.text(kKey, "relu");
  constexpr std::string_view kGated = "gated-";
  config.gated_mlp = written.starts_with(kGated);
  const auto known = activation_from_name(
      config.gated_mlp ? std::string_view(written).substr(kGated.size()) : written);
  if (!known) {
    file.reader().fail(kKey, "\"" + shown(written) + "\" is not a feed-forward known here",
                       "use an activation such as \"relu\", or \"gated-gelu\"");
  }
  config.activation = known.value_or(Activation::relu);
}

}  // namespace

TransformerConfig read_t5(ConfigFile& file) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"d_model", "hidden_size"});
  c.head_dim = file.needed("head_dim", {"d_kv", "head_dim"});
  c.intermediate_size = file.needed("intermediate_size", {"d_ff"});
  c.num_encoder_layers =
      file.needed("num_encoder_layers", {"num_layers", "num_hidden_layers"}, kMaxLayers);
  c.num_hidden_layers =
      file.size("num_hidden_layers", {"num_decoder_layers"}, c.num_encoder_layers, kMaxLayers);
  if (c.num_hidden_layers == 0) c.num_hidden_layers = c.num_encoder_layers;
  c.num_attention_heads =
      file.needed("num_attention_heads", {"num_heads", "num_attention_heads"}, kMaxHeads);
  c.relative_attention_num_buckets =
      file.size("relative_attention_num_buckets", {"relative_attention_num_buckets"}, 32);
  c.vocab_size = file.needed("vocab_size", {"vocab_size"});
  // Relative positions have no end; published files state the length of training.
  c.max_position_embeddings = file.size("max_position_embeddings", {"n_positions"}, 512);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", true);
  read_feed_forward(file, c);
  c.position_embedding = PositionEmbedding::relative;

  c.names.token_embedding = "shared";
  c.names.encoder_final_norm = "encoder.final_layer_norm";
  c.names.final_norm = "decoder.final_layer_norm";
  c.names.encoder_block = block_names("encoder", "layer.1", c.gated_mlp);
  c.names.block = block_names("decoder", "layer.2", c.gated_mlp);
  return c;
}

}  // namespace shardwise
