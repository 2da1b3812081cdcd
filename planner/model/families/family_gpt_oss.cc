#include <utility>

#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_gpt_oss(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 8, .max_position_embeddings = 131072});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.head_dim = file.size("head_dim", {"head_dim"}, 64);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", true);
  c.attention_sinks = true;
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 128);
  c.windows = file.windows(c.num_hidden_layers, window, "alternates",
                           [](std::int64_t layer) { return (layer + 1) % 2 != 0; });
  c.mlp_bias = true;
  MoeConfig moe;
  moe.num_experts = needed_experts(file, "num_local_experts");
  moe.num_experts_per_tok =
      file.needed("num_experts_per_tok", {"num_experts_per_tok", "experts_per_token"}, kMaxExperts);
  moe.intermediate_size = c.intermediate_size;
  moe.router_bias = true;
  moe.stacked_experts = true;
  c.moe = std::move(moe);
  c.names.block.router = "mlp.router";
  c.names.block.experts_prefix = "mlp.experts.";
  return c;
}

}  // namespace shardwise
