#include <utility>

#include "planner/model/families.h"

namespace shardwise {

TransformerConfig read_decoder(ConfigFile& file, const DecoderDefaults& defaults) {
  TransformerConfig c;
  c.hidden_size = file.size("hidden_size", {"hidden_size"}, defaults.hidden_size);
  c.intermediate_size =
      file.size("intermediate_size", {"intermediate_size"}, defaults.intermediate_size);
  c.num_hidden_layers =
      file.size("num_hidden_layers", {"num_hidden_layers"}, defaults.num_hidden_layers, kMaxLayers);
  c.num_attention_heads = file.size("num_attention_heads", {"num_attention_heads"},
                                    defaults.num_attention_heads, kMaxHeads);
  c.num_key_value_heads = file.size("num_key_value_heads", {"num_key_value_heads"},
                                    defaults.num_key_value_heads, kMaxHeads);
  c.vocab_size = file.size("vocab_size", {"vocab_size"}, defaults.vocab_size);
  c.max_position_embeddings = file.size("max_position_embeddings", {"max_position_embeddings"},
                                        defaults.max_position_embeddings);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", defaults.tie_word_embeddings);
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  return c;
}

TransformerConfig read_llama(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 4096,
                                            .intermediate_size = 11008,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 0,
                                            .vocab_size = 32000,
                                            .max_position_embeddings = 2048});
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.mlp_bias = file.flag("mlp_bias", false);
  return c;
}

TransformerConfig read_mistral(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 4096,
                                            .intermediate_size = 14336,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 8,
                                            .vocab_size = 32000,
                                            .max_position_embeddings = 131072});
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 4096);
  c.windows = file.windows(c.num_hidden_layers, window, [](std::int64_t) { return true; });
  return c;
}

TransformerConfig read_mixtral(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 4096,
                                            .intermediate_size = 14336,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 8,
                                            .vocab_size = 32000,
                                            .max_position_embeddings = 131072});
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 0);
  c.windows = file.windows(c.num_hidden_layers, window, [](std::int64_t) { return true; });
  MoeConfig moe;
  moe.num_experts = file.size("num_experts", {"num_local_experts"}, 8, kMaxExperts);
  moe.num_experts_per_tok =
      file.size("num_experts_per_tok", {"num_experts_per_tok"}, 2, kMaxExperts);
  moe.intermediate_size = c.intermediate_size;
  c.moe = std::move(moe);
  c.names.block.router = "block_sparse_moe.gate";
  c.names.block.experts_prefix = "block_sparse_moe.experts.{expert}.";
  c.names.block.experts = {.gate = "w1", .up = "w3", .gate_up = "", .down = "w2"};
  return c;
}

}  // namespace shardwise
