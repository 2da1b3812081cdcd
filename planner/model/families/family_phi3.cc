#include "planner/model/families/families.h"

namespace shardwise {

TransformerConfig read_phi3(ConfigFile& file) {
  TransformerConfig c =
      read_decoder(file, {.num_key_value_heads = 0, .max_position_embeddings = 4096});
  c.activation = file.activation({"hidden_act"}, Activation::silu);
  c.numerics = llama_numerics(file);
  c.head_dim = file.size("head_dim", {"head_dim"}, 0);
  const double rotated = rotated_share(file, "partial_rotary_factor", 1.0);
  if (c.num_attention_heads > 0) {
    const std::int64_t head_dim =
        c.head_dim > 0 ? c.head_dim : c.hidden_size / c.num_attention_heads;
    c.rotary_dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * rotated);
  }
  const std::int64_t window = file.count("sliding_window", {"sliding_window"}, 0);
  c.windows = file.windows(c.num_hidden_layers, window, "", [](std::int64_t) { return true; });
  c.fused_qkv = c.fused_gate_up = true;
  return c;
}

}  // namespace shardwise
