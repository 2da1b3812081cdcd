#include <utility>

#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_decoder(ConfigFile& file, const DecoderDefaults& defaults) {
  TransformerConfig c;
  c.hidden_size = file.needed("hidden_size", {"hidden_size"}, kMaxSize, defaults.hidden_size);
  c.intermediate_size =
      file.needed("intermediate_size", {"intermediate_size"}, kMaxSize, defaults.intermediate_size);
  c.num_hidden_layers = file.needed("num_hidden_layers", {"num_hidden_layers"}, kMaxLayers,
                                    defaults.num_hidden_layers);
  c.num_attention_heads = file.needed("num_attention_heads", {"num_attention_heads"}, kMaxHeads,
                                      defaults.num_attention_heads);
  if (defaults.num_key_value_heads != kNoSuchKey) {
    c.num_key_value_heads = file.size("num_key_value_heads", {"num_key_value_heads"},
                                      defaults.num_key_value_heads, kMaxHeads);
  }
  c.vocab_size = file.needed("vocab_size", {"vocab_size"}, kMaxSize, defaults.vocab_size);
  c.max_position_embeddings = file.size("max_position_embeddings", {"max_position_embeddings"},
                                        defaults.max_position_embeddings);
  c.tie_word_embeddings = file.flag("tie_word_embeddings", defaults.tie_word_embeddings);
  return c;
}

std::int64_t needed_experts(ConfigFile& file, std::string_view usual) {
  constexpr std::string_view kQwen = "num_experts";
  constexpr std::string_view kMixtral = "num_local_experts";
  constexpr std::string_view kDeepseek = "n_routed_experts";
  const std::string_view second = usual == kQwen ? kMixtral : kQwen;
  const std::string_view third = usual == kDeepseek ? kMixtral : kDeepseek;
  return file.needed("num_experts", {usual, second, third}, kMaxExperts);
}

TransformerConfig read_llama(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 0, .max_position_embeddings = 2048});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.mlp_bias = file.flag("mlp_bias", false);
  return c;
}

TransformerConfig read_mistral(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 8, .max_position_embeddings = 131072});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 4096);
  c.windows = file.windows(c.num_hidden_layers, window, "", [](std::int64_t) { return true; });
  return c;
}

TransformerConfig read_mixtral(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 8, .max_position_embeddings = 131072});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 0);
  c.windows = file.windows(c.num_hidden_layers, window, "", [](std::int64_t) { return true; });
  MoeConfig moe;
  moe.num_experts = needed_experts(file, "num_local_experts");
  moe.num_experts_per_tok =
      file.needed("num_experts_per_tok", {"num_experts_per_tok"}, kMaxExperts);
  moe.intermediate_size = c.intermediate_size;
  c.moe = std::move(moe);
  c.names.block.router = "block_sparse_moe.gate";
  c.names.block.experts_prefix = "block_sparse_moe.experts.{expert}.";
  c.names.block.experts = {.gate = "w1", .up = "w3", .gate_up = "", .down = "w2"};
  return c;
}

}  // namespace shardwise
