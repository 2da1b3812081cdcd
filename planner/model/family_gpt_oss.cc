#include <utility>

#include "planner/model/families.h"

namespace shardwise {

TransformerConfig read_gpt_oss(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 2880,
                                            .intermediate_size = 2880,
                                            .num_hidden_layers = 36,
                                            .num_attention_heads = 64,
                                            .num_key_value_heads = 8,
                                            .vocab_size = 201088,
                                            .max_position_embeddings = 131072});
  c.head_dim = file.size("head_dim", {"head_dim"}, 64);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", true);
  c.attention_sinks = true;
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 128);
  c.windows = file.windows(c.num_hidden_layers, window,
                           [](std::int64_t layer) { return (layer + 1) % 2 != 0; });
  c.mlp_bias = true;
  MoeConfig moe;
  moe.num_experts = file.size("num_experts", {"num_local_experts"}, 128, kMaxExperts);
  moe.num_experts_per_tok = file.size("num_experts_per_tok",
                                      {"num_experts_per_tok", "experts_per_token"}, 4, kMaxExperts);
  moe.intermediate_size = c.intermediate_size;
  moe.router_bias = true;
  moe.stacked_experts = true;
  c.moe = std::move(moe);
  c.names.block.router = "mlp.router";
  c.names.block.experts_prefix = "mlp.experts.";
  return c;
}

}  // namespace shardwise
