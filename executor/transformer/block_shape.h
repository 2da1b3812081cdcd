#pragma once

#include <cstdint>
#include <vector>

#include "executor/kernels/gelu.h"
#include "executor/transformer/layer.h"
#include "executor/transformer/parameters.h"

namespace shardwise::exec {

/// A matrix whose output is some columns of a wider tensor.
struct Projection {
  ParameterIndex parameters;
  std::int64_t out = 0;
};

/// A block as its kernels see it.
struct BlockShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;
  std::int64_t intermediate = 0;
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;  // of weights
  bool shared = false;           // heads and widths are one rank's parts
  std::int64_t spread = 1;       // ranks that have the stream's tokens, each as many: sequence
                                 // parallelism
  bool leads = true;  // of the ranks that share a block the one that adds what all have whole
  bool recompute = false;
  RecomputedOperations again;
  bool rms = false;
  bool rope = false;
  bool head_norms = false;  // of queries and keys
  bool gated = false;
  bool transposed = false;  // matrices are stored [in, out]
  float epsilon = 0;
  Gelu gelu = Gelu::tanh;
  ParameterIndex attention_norm;
  ParameterIndex q_norm;
  ParameterIndex k_norm;
  ParameterIndex o;
  ParameterIndex mlp_norm;
  ParameterIndex down;
  std::vector<Projection> attention;  // queries, keys, values; or one for all
  std::vector<Projection> mlp;        // gate, up; or one for both; or up alone

  std::int64_t element_bytes() const { return bytes_of(dtype); }
  std::int64_t tokens() const { return batch * sequence; }
  /// Tokens of the stream on this rank.
  std::int64_t stream_tokens() const { return tokens() / spread; }
  /// Bytes of the stream, and of each tensor of its shape.
  std::int64_t stream_bytes() const { return stream_tokens() * hidden * element_bytes(); }
  /// Bytes of a tensor of that width with all tokens, where a rank has a part of the stream's.
  std::int64_t gathered_bytes() const { return spread > 1 ? spread * stream_bytes() : 0; }
  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::int64_t up_width() const { return (gated ? 2 : 1) * intermediate; }
};

/// \pre cannot_run(model) is empty and `layer` is one of its blocks
BlockShape block_shape(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape);

}  // namespace shardwise::exec
