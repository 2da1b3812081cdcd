#include <algorithm>
#include <optional>

#include "planner/model/families/families.h"

namespace shardwise {
namespace {

/// max_window_layers of the classes that have it.
constexpr std::int64_t kFirstSliding = 28;

/// Qwen windows the layers from max_window_layers on, and only when use_sliding_window says so.
/// \param first_sliding  of a file without "max_window_layers"; nothing = the family has no such
/// key
void read_windows(ConfigFile& file, TransformerConfig& config,
                  std::optional<std::int64_t> first_sliding) {
  const bool used = file.flag("use_sliding_window", false);
  const std::int64_t window = used ? file.count("sliding_window", {"sliding_window"}, 4096) : 0;
  if (used && first_sliding && !file.has("layer_types")) {
    first_sliding =
        file.count("max_window_layers", {"max_window_layers"}, *first_sliding, kMaxLayers);
  }
  config.windows = file.windows(config.num_hidden_layers, window, "", [&](std::int64_t layer) {
    return layer >= first_sliding.value_or(0);
  });
}

/// Every decoder_sparse_step-th layer has experts, except those in mlp_only_layers.
void read_qwen_experts(ConfigFile& file, TransformerConfig& config) {
  MoeConfig moe;
  moe.num_experts = needed_experts(file, "num_experts");
  moe.num_experts_per_tok =
      file.needed("num_experts_per_tok", {"num_experts_per_tok"}, kMaxExperts);
  moe.intermediate_size = file.needed("moe_intermediate_size", {"moe_intermediate_size"});
  const std::int64_t step = std::max<std::int64_t>(
      1, file.size("decoder_sparse_step", {"decoder_sparse_step"}, 1, kMaxLayers));
  moe.dense_layers = file.integers("dense_layers", "mlp_only_layers");
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if ((layer + 1) % step != 0) moe.dense_layers.push_back(layer);
  }
  std::sort(moe.dense_layers.begin(), moe.dense_layers.end());
  moe.router = router_numerics(file, {.norm_topk_prob = false});
  if (moe.num_experts > 0) config.moe = std::move(moe);
}

}  // namespace

TransformerConfig read_qwen2(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 32, .max_position_embeddings = 32768});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.qkv_bias = true;
  read_windows(file, c, kFirstSliding);
  return c;
}

TransformerConfig read_qwen3(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 32, .max_position_embeddings = 32768});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 128);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.qk_norm = true;
  read_windows(file, c, kFirstSliding);
  return c;
}

TransformerConfig read_qwen2_moe(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 16, .max_position_embeddings = 32768});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.qkv_bias = file.flag("qkv_bias", true);
  read_windows(file, c, kFirstSliding);
  read_qwen_experts(file, c);
  if (c.moe) {
    c.moe->shared_intermediate_size =
        file.needed("shared_intermediate_size", {"shared_expert_intermediate_size"});
    c.moe->shared_expert_gate = true;
  }
  c.names.block.shared_experts_prefix = "mlp.shared_expert.";
  return c;
}

TransformerConfig read_qwen3_moe(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 4, .max_position_embeddings = 32768});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  c.qkv_bias = c.attention_output_bias = file.flag("attention_bias", false);
  c.qk_norm = true;
  read_windows(file, c, std::nullopt);
  read_qwen_experts(file, c);
  return c;
}

}  // namespace shardwise
