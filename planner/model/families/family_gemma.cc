#include <algorithm>

#include "planner/model/families/families.h"

namespace shardwise {
namespace {

/// Gemma 2 and 3 norm the outputs of attention and feed-forward too.
void set_four_norms(TransformerConfig& config) {
  config.norm_placement = NormPlacement::both;
  BlockNames& block = config.names.block;
  block.attention_output_norm = "post_attention_layernorm";
  block.mlp_norm = "pre_feedforward_layernorm";
  block.mlp_output_norm = "post_feedforward_layernorm";
}

}  // namespace

TransformerConfig read_gemma(ConfigFile& file) {
  TransformerConfig c = read_decoder(
      file,
      {.num_key_value_heads = 16, .max_position_embeddings = 8192, .tie_word_embeddings = true});
  c.head_dim = file.size("head_dim", {"head_dim"}, 256);
  c.fp32_gain = true;
  c.activation = file.activation({"hidden_activation", "hidden_act"}, Activation::gelu);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  return c;
}

TransformerConfig read_gemma2(ConfigFile& file) {
  TransformerConfig c = read_decoder(
      file,
      {.num_key_value_heads = 4, .max_position_embeddings = 8192, .tie_word_embeddings = true});
  c.head_dim = file.size("head_dim", {"head_dim"}, 256);
  c.fp32_gain = true;
  c.activation = file.activation({"hidden_activation"}, Activation::gelu);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.logit_softcap = file.number("final_logit_softcapping", 30.0, 0, 1e9) > 0;
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 4096);
  c.windows = file.windows(c.num_hidden_layers, window, "alternates",
                           [](std::int64_t layer) { return (layer + 1) % 2 != 0; });
  set_four_norms(c);
  return c;
}

TransformerConfig read_gemma3_text(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 2304,
                                            .intermediate_size = 9216,
                                            .num_hidden_layers = 26,
                                            .num_attention_heads = 8,
                                            .vocab_size = 262208,
                                            .num_key_value_heads = 4,
                                            .max_position_embeddings = 131072,
                                            .tie_word_embeddings = true});
  c.head_dim = file.size("head_dim", {"head_dim"}, 256);
  c.fp32_gain = true;
  c.activation = file.activation({"hidden_activation"}, Activation::gelu);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.qk_norm = true;
  c.logit_softcap = file.number("final_logit_softcapping", 0.0, 0, 1e9) > 0;
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 4096);
  std::int64_t pattern = 6;
  if (!file.has("layer_types")) {
    pattern = std::max<std::int64_t>(
        1, file.size("sliding_window_pattern",
                     {"sliding_window_pattern", "_sliding_window_pattern"}, pattern, kMaxLayers));
  }
  c.windows = file.windows(c.num_hidden_layers, window, "",
                           [&](std::int64_t layer) { return (layer + 1) % pattern != 0; });
  set_four_norms(c);
  return c;
}

}  // namespace shardwise
