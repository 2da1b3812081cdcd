#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/model/families/checkpoint_names.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

enum class NormKind : std::uint8_t { layernorm, rmsnorm };
/// Where the norms of a block stand relative to attention and feed-forward.
enum class NormPlacement : std::uint8_t {
  before,  // x + f(norm(x)): GPT-2, Llama
  after,   // norm(x + f(x)): BERT
  both,    // x + norm(f(norm(x))): Gemma 2
};
enum class Activation : std::uint8_t { gelu, relu, silu };
enum class PositionEmbedding : std::uint8_t { none, learned, rope, alibi, relative };

/// Feed-forward of routed experts.
struct MoeConfig {
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t intermediate_size = 0;         // of one routed expert
  std::int64_t shared_intermediate_size = 0;  // of all shared experts together; 0 = none
  std::vector<std::int64_t> dense_layers;     // layers with the dense feed-forward instead
  bool shared_expert_gate = false;            // a sigmoid gate scales the shared expert (Qwen2)
  bool router_bias = false;
  bool correction_bias = false;  // one untrained number an expert balances the load (DeepSeek-V3)
  bool stacked_experts = false;  // one [experts, in, out] tensor for all experts (GPT-OSS)
  RouterNumerics router;
};

/// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).
struct MlaConfig {
  std::int64_t q_lora_rank = 0;  // 0 = queries straight from the hidden state
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

/// The architecture of one transformer, whatever family or description it came from.
///
/// The defaults are a Llama: set the sizes and it is complete. Zero means "derived" where the
/// comment says so; make_model resolves it.
struct TransformerConfig {
  std::string model_type = "transformer";

  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;  // of the decoder when there is an encoder too
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;  // 0 = num_attention_heads
  std::int64_t head_dim = 0;             // 0 = hidden_size / num_attention_heads
  std::int64_t intermediate_size = 0;    // of the dense feed-forward
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;

  std::int64_t num_encoder_layers = 0;  // > 0: decoder blocks attend to an encoder too (T5)
  bool causal = true;                   // false: an encoder alone (BERT)

  NormKind norm = NormKind::rmsnorm;
  NormPlacement norm_placement = NormPlacement::before;
  bool norm_weight = true;
  bool norm_bias = false;
  bool fp32_gain = false;             // the weight of a norm scales it in fp32 (Gemma)
  bool embedding_norm = false;        // a norm after the embedding (BLOOM, BERT)
  bool final_norm = true;             // a norm before the head
  bool qk_norm = false;               // norms of queries and keys, one head_dim wide
  bool parallel_residual = false;     // x + attention(norm(x)) + mlp(norm(x)): GPT-NeoX, Falcon
  bool shared_parallel_norm = false;  // … with one norm for both (Falcon-7B)

  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool fused_qkv = false;             // queries, keys and values are one matrix
  bool fused_gate_up = false;         // gate and up are one matrix
  bool transposed_linear = false;     // weights of blocks are stored [in, out] (GPT-2's Conv1D)
  bool attention_sinks = false;       // a learned logit a head that takes probability (GPT-OSS)
  std::vector<std::int64_t> windows;  // sliding window a layer, 0 = full; empty = all full

  Activation activation = Activation::silu;
  bool gated_mlp = true;

  PositionEmbedding position_embedding = PositionEmbedding::rope;
  std::int64_t position_table_rows = 0;  // learned: 0 = max_position_embeddings (OPT has 2 more)
  std::int64_t rotary_dim = 0;           // rope: rotated part of a head; 0 = head_dim
  std::int64_t relative_attention_num_buckets = 32;  // relative: rows of the table (T5)

  std::int64_t embedding_size = 0;   // width of the token embedding; 0 = hidden_size (OPT-350m)
  std::int64_t type_vocab_size = 0;  // > 0: a table of token types is added (BERT)
  bool pretraining_heads = false;    // BERT's masked-word head and next-sentence head
  bool logit_softcap = false;        // cap · tanh(logits / cap) before the loss (Gemma 2)

  std::optional<MoeConfig> moe;
  std::optional<MlaConfig> mla;
  std::int64_t num_mtp_layers = 0;  // extra blocks that predict further tokens (DeepSeek-V3)

  ModelNumerics numerics;  // of the families that docs/models.md names; else as they stand

  CheckpointNames names;

  std::vector<std::string> absent_keys;  // ReadModel::absent_keys, planner/model/hf_config.h
};

/// Layers that keep the dense feed-forward: the first `first_dense`, then all but every
/// `frequency`-th, counted so that layer 0 has experts when first_dense is 0 (Megatron-LM's
/// --moe-layer-freq, DeepSeek's moe_layer_freq). \pre frequency >= 1
std::vector<std::int64_t> dense_layers_of(std::int64_t num_layers, std::int64_t first_dense,
                                          std::int64_t frequency);

}  // namespace shardwise
