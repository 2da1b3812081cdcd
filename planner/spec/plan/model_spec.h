#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardwise {

/// How tensor parallelism cuts a tensor or an operation.
enum class TpSplit : std::uint8_t {
  none,    // every tp rank has all of it (norms, routers; their tokens may be cut by sequence
           // parallel)
  column,  // output features: parameter dimension 0 of an [out, in] weight, the n of a GEMM
  row,     // input features: parameter dimension 1 of an [out, in] weight, the k of a GEMM
  vocab,   // vocabulary rows of an embedding or a head
  heads,   // attention heads
};

/// One named tensor of a checkpoint.
struct ParameterSpec {
  std::string name;  // as in the Hugging Face checkpoint; "{layer}", "{expert}" stand
                     // for indices: "model.layers.{layer}.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;  // as stored; empty = scalar
  TpSplit tp = TpSplit::none;
  int tp_dim = -1;             // the dimension of `shape` that tp cuts; -1 for none
  std::int64_t count = 1;      // tensors of this name: the number of experts for "{expert}"
  bool routed_expert = false;  // cut by ep (over experts) and etp, its data parallelism is edp
  bool trainable = true;

  std::int64_t elements() const {  // of all `count` tensors
    std::int64_t product = count;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

enum class OpKind : std::uint8_t {
  embedding,   // row gather; width = hidden, rows = vocabulary
  gemm,        // [m, k] x [k, n]; m = tokens
  attention,   // softmax(Q K^T) V
  norm,        // layernorm or rmsnorm over width
  activation,  // gelu, silu-and-multiply … ; width = output elements a token
  rope,        // rotary embedding of queries and keys; width = elements rotated a token
  residual,    // add of two [tokens, width]
  router,      // top-k choice among `experts`; its GEMM is an operation of its own
  dispatch,    // tokens to experts (permute, all-to-all over ep); width = hidden
  combine,     // back, weighted by the router's probabilities; width = hidden
  loss,        // cross-entropy over width = vocabulary
};

/// One operation of a layer's forward pass, with the shapes cost models need. Backward follows from
/// the kind: a GEMM has two of the same work, attention 2.5 times the matrix work, and so on.
struct OperationSpec {
  std::string name;  // "self_attn.q_proj"; unique in its layer
  OpKind kind = OpKind::gemm;
  TpSplit tp = TpSplit::none;
  bool routed_expert = false;  // runs on tokens x experts_per_token, spread over the experts
  std::int64_t width =
      0;               // elements a token: GEMM n; norm/activation/residual width; vocab of loss
  std::int64_t k = 0;  // GEMM k; rows of an embedding; experts of a router
  bool gated = false;  // activation reads 2 x width (gate and up)
  bool bias = false;   // GEMM adds a bias
  bool fp32 = false;   // computed in fp32 whatever the precision (router, logits of some); of a
                       // norm: its gain is applied in fp32 too
  bool rms = false;    // norm: rmsnorm rather than layernorm
  // attention only
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // key/value heads
  std::int64_t qk_head_dim = 0;
  std::int64_t v_head_dim = 0;
  std::int64_t window = 0;  // sliding window in tokens; 0 = full
  bool causal = true;
  bool cross = false;  // keys and values come from the encoder
  friend bool operator==(const OperationSpec&, const OperationSpec&) = default;
};

/// Which part of a transformer a layer is: decides where a pipeline may put it.
enum class LayerRole : std::uint8_t { embedding, encoder_block, block, head, mtp };

/// Blocks of the model's own depth, which pipelines cut: those for further tokens (mtp) go with the
/// head.
constexpr bool is_main_block(LayerRole role) {
  return role == LayerRole::block || role == LayerRole::encoder_block;
}
/// And those too: what full recompute runs again.
constexpr bool is_block(LayerRole role) { return is_main_block(role) || role == LayerRole::mtp; }

/// One kind of layer; equal layers share it.
struct LayerSpec {
  std::string name;  // "block", "dense_block", "embedding", "head" …; unique in the model
  LayerRole role = LayerRole::block;
  std::vector<ParameterSpec> parameters;
  std::vector<OperationSpec> operations;  // in forward order

  std::int64_t parameter_count() const {
    std::int64_t sum = 0;
    for (const ParameterSpec& p : parameters) sum += p.elements();
    return sum;
  }
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

/// The exact function behind OpKind::activation.
enum class ActivationFunction : std::uint8_t {
  silu,
  relu,
  gelu_erf,   // x Phi(x)
  gelu_tanh,  // its approximation by tanh
  gelu_new,   // the same of several operators in PyTorch: transformers' GPT-2 and Phi
  other,      // one that the executor does not compute
};

/// How rotary angles are changed so that a model sees longer sequences than it was trained on.
enum class RopeScaling : std::uint8_t {
  none,
  linear,  // every angle over `rope_factor`
  llama3,  // long wavelengths over `rope_factor`, short ones as they are, between them a blend
  other,   // one that the executor does not compute
};

/// The numbers in a transformer's formulas. They change what it computes and, but for activations
/// of several operators, not what that costs. Names as in config.json.
struct ModelNumerics {
  double norm_epsilon = 1e-6;  // rms_norm_eps, layer_norm_epsilon
  ActivationFunction activation = ActivationFunction::silu;
  double rope_theta = 10'000;
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_factor = 1;
  double rope_low_freq_factor = 1;                            // llama3
  double rope_high_freq_factor = 4;                           // llama3
  std::int64_t rope_original_max_position_embeddings = 8192;  // llama3
  friend bool operator==(const ModelNumerics&, const ModelNumerics&) = default;
};

/// How a router weighs the experts of a token: as ModelNumerics, for models with experts.
struct RouterNumerics {
  bool sigmoid = false;              // scoring_func: sigmoid of each logit, not softmax of all
  bool norm_topk_prob = true;        // weights of the chosen experts are divided by their sum
  std::int64_t n_group = 1;          // groups of experts
  std::int64_t topk_group = 1;       // of which a token may choose experts
  double routed_scaling_factor = 1;  // of the weights
  friend bool operator==(const RouterNumerics&, const RouterNumerics&) = default;
};

/// A transformer: kinds of layers and the sequence in which they run. Parameters are exact.
struct ModelSpec {
  std::string name;        // "llama-3.1-8b"
  std::string model_type;  // Hugging Face's, or "transformer" for one described by hand
  std::string source;      // where the configuration was published; empty for a user's file
  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0;      // of the dense feed-forward
  std::int64_t moe_intermediate_size = 0;  // of one routed expert; 0 for dense models
  std::int64_t num_experts = 0;            // routed
  std::int64_t num_experts_per_tok = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;  // the head uses the embedding's table, counted once
  ModelNumerics numerics;
  RouterNumerics router;
  std::vector<LayerSpec> kinds;
  std::vector<int> layers;  // index into kinds, in forward order, embedding first

  /// Elements of all tensors of the checkpoint.
  std::int64_t parameter_count() const;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace shardwise
