#pragma once

#include <string>

namespace shardwise {

// Names of modules in the state dict of Hugging Face's model class, without ".weight" and ".bias".
// Defaults are Llama's; a family sets what it spells otherwise. An empty name is a module the
// family does not have. Source: transformers 4.57.6, models/*/modeling_*.py.

/// Modules of one attention, relative to the block.
struct AttentionNames {
  std::string q = "self_attn.q_proj";
  std::string k = "self_attn.k_proj";
  std::string v = "self_attn.v_proj";
  std::string qkv = "self_attn.qkv_proj";  // when queries, keys and values are one matrix
  std::string o = "self_attn.o_proj";
  std::string q_norm = "self_attn.q_norm";
  std::string k_norm = "self_attn.k_norm";
  std::string sinks = "self_attn.sinks";
  std::string relative_bias = "self_attn.relative_attention_bias";
  // Multi-head latent attention; without a query rank the queries use `q`.
  std::string q_a = "self_attn.q_a_proj";
  std::string q_a_norm = "self_attn.q_a_layernorm";
  std::string q_b = "self_attn.q_b_proj";
  std::string kv_a = "self_attn.kv_a_proj_with_mqa";
  std::string kv_a_norm = "self_attn.kv_a_layernorm";
  std::string kv_b = "self_attn.kv_b_proj";
};

/// The default names under another prefix than "self_attn.".
inline AttentionNames attention_names(const std::string& prefix) {
  AttentionNames names;
  names.q = prefix + "q_proj";
  names.k = prefix + "k_proj";
  names.v = prefix + "v_proj";
  names.qkv = prefix + "qkv_proj";
  names.o = prefix + "o_proj";
  names.q_norm = prefix + "q_norm";
  names.k_norm = prefix + "k_norm";
  names.sinks = prefix + "sinks";
  return names;
}

/// Matrices of one feed-forward, relative to its prefix.
struct MlpNames {
  std::string gate = "gate_proj";
  std::string up = "up_proj";
  std::string gate_up = "gate_up_proj";  // when gate and up are one matrix
  std::string down = "down_proj";
};

/// Modules of one block, relative to `prefix`.
struct BlockNames {
  std::string prefix = "model.layers.{layer}.";
  std::string attention_norm = "input_layernorm";
  std::string attention_output_norm = "attention_output_layernorm";
  std::string cross_attention_norm = "cross_attention_layernorm";
  std::string mlp_norm = "post_attention_layernorm";
  std::string mlp_output_norm = "mlp_output_layernorm";
  AttentionNames attention = {};
  AttentionNames cross_attention = attention_names("cross_attn.");
  std::string mlp_prefix = "mlp.";
  MlpNames mlp = {};
  std::string router = "mlp.gate";
  std::string correction_bias = "mlp.gate.e_score_correction_bias";
  std::string experts_prefix = "mlp.experts.{expert}.";
  MlpNames experts = {};
  std::string shared_experts_prefix = "mlp.shared_experts.";
  std::string shared_expert_gate = "mlp.shared_expert_gate";
};

/// Modules outside the blocks, and the blocks of decoder and encoder.
struct CheckpointNames {
  std::string token_embedding = "model.embed_tokens";
  std::string position_embedding = "model.embed_positions";
  std::string token_type_embedding = "model.embed_token_types";
  std::string embedding_norm = "model.embed_norm";
  std::string project_in = "model.project_in";
  std::string project_out = "model.project_out";
  std::string encoder_final_norm = "model.encoder_norm";
  std::string final_norm = "model.norm";
  std::string lm_head = "lm_head";
  BlockNames block;
  BlockNames encoder_block = {.prefix = "model.encoder_layers.{layer}."};
};

}  // namespace shardwise
