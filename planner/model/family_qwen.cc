#include <algorithm>

#include "planner/model/families.h"

namespace shardwise {
namespace {

/// Qwen windows the layers from max_window_layers on, and only when use_sliding_window says so.
void read_windows(ConfigFile& file, TransformerConfig& config, std::int64_t first_sliding) {
  const bool used = file.flag("use_sliding_window", false);
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 4096);
  config.windows = file.windows(config.num_hidden_layers, used ? window : 0,
                                [&](std::int64_t layer) { return layer >= first_sliding; });
}

std::int64_t read_first_sliding(ConfigFile& file) {
  return file.count("max_window_layers", {"max_window_layers"}, 28, kMaxLayers);
}

/// Every decoder_sparse_step-th layer has experts, except those in mlp_only_layers.
void read_experts(ConfigFile& file, TransformerConfig& config, std::int64_t experts,
                  std::int64_t experts_per_tok, std::int64_t intermediate_size) {
  MoeConfig moe;
  moe.num_experts = file.count("num_experts", {"num_experts"}, experts, kMaxExperts);
  moe.num_experts_per_tok =
      file.size("num_experts_per_tok", {"num_experts_per_tok"}, experts_per_tok, kMaxExperts);
  moe.intermediate_size =
      file.size("moe_intermediate_size", {"moe_intermediate_size"}, intermediate_size);
  const std::int64_t step = std::max<std::int64_t>(
      1, file.size("decoder_sparse_step", {"decoder_sparse_step"}, 1, kMaxLayers));
  moe.dense_layers = file.integers("dense_layers", "mlp_only_layers");
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if ((layer + 1) % step != 0) moe.dense_layers.push_back(layer);
  }
  std::sort(moe.dense_layers.begin(), moe.dense_layers.end());
  if (moe.num_experts > 0) config.moe = std::move(moe);
}

}  // namespace

TransformerConfig read_qwen2(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 4096,
                                            .intermediate_size = 22016,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 32,
                                            .vocab_size = 151936,
                                            .max_position_embeddings = 32768});
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.qkv_bias = true;
  read_windows(file, c, read_first_sliding(file));
  return c;
}

TransformerConfig read_qwen3(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 4096,
                                            .intermediate_size = 22016,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 32,
                                            .vocab_size = 151936,
                                            .max_position_embeddings = 32768});
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 128);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.qk_norm = true;
  read_windows(file, c, read_first_sliding(file));
  return c;
}

TransformerConfig read_qwen2_moe(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 2048,
                                            .intermediate_size = 5632,
                                            .num_hidden_layers = 24,
                                            .num_attention_heads = 16,
                                            .num_key_value_heads = 16,
                                            .vocab_size = 151936,
                                            .max_position_embeddings = 32768});
  c.qkv_bias = file.flag("qkv_bias", true);
  read_windows(file, c, read_first_sliding(file));
  read_experts(file, c, 60, 4, 1408);
  if (c.moe) {
    c.moe->shared_intermediate_size =
        file.size("shared_intermediate_size", {"shared_expert_intermediate_size"}, 5632);
    c.moe->shared_expert_gate = true;
  }
  c.names.block.shared_experts_prefix = "mlp.shared_expert.";
  return c;
}

TransformerConfig read_qwen3_moe(ConfigFile& file) {
  TransformerConfig c = read_decoder(file, {.hidden_size = 2048,
                                            .intermediate_size = 6144,
                                            .num_hidden_layers = 24,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 4,
                                            .vocab_size = 151936,
                                            .max_position_embeddings = 32768});
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.qk_norm = true;
  read_windows(file, c, /*first_sliding=*/0);
  read_experts(file, c, 128, 8, 768);
  return c;
}

}  // namespace shardwise
