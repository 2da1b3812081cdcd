#pragma once

#include "executor/kernels/attention.h"
#include "executor/kernels/linear.h"
#include "executor/kernels/rope.h"
#include "executor/transformer/block_memory.h"
#include "executor/transformer/block_places.h"
#include "executor/transformer/block_shape.h"
#include "executor/transformer/layer.h"
#include "executor/transformer/norm_of.h"
#include "executor/transformer/weights.h"

namespace shardwise::exec {

/// x + attention(norm(x)), then x + feed_forward(norm(x)): GPT-2, Llama, Mistral, Qwen2, Qwen3.
/// E is float or Bf16.
///
/// Products add to the residual stream, so that it is one tensor; in backward a product's weight
/// gradient comes first and its input's gradient then takes the input's place.
template <class E, class G>
class BlockLayer final : public Layer {
 public:
  BlockLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape);

  LayerBytes bytes() const override;
  void forward(const ForwardPass& pass, Workers& workers) const override;
  void recompute(const BackwardPass& pass, Workers& workers) const override;
  void backward(const BackwardPass& pass, Workers& workers) const override;

 private:
  /// What forward makes: where it is kept, else where it passes by.
  BlockPlaces<E> forward_places(const ForwardPass& pass) const;
  /// What backward reads: in the workspace where it is computed again, else kept.
  BlockPlaces<E> backward_places(const BackwardPass& pass) const;
  /// From x to what attention adds to `stream`.
  void attention_half(const BlockPlaces<E>& at, const Weights<E>& weights, const E* x, E* stream,
                      Workers& workers) const;
  /// From the stream between the halves to the activation.
  void mlp_half(const BlockPlaces<E>& at, const Weights<E>& weights, const E* middle,
                Workers& workers) const;
  void activate(const BlockPlaces<E>& at, Workers& workers) const;
  void mlp_half_backward(const BlockPlaces<E>& at, const Weights<E>& weights,
                         const Gradients<G>& gradients, E* d_stream, Workers& workers) const;
  void attention_half_backward(const BlockPlaces<E>& at, const Weights<E>& weights,
                               const Gradients<G>& gradients, const E* x, std::byte* scratch,
                               E* d_stream, Workers& workers) const;
  /// The gradient of what several projections read, in its place, from those of what they made.
  void projections_backward(const std::vector<Projection>& projections,
                            const std::vector<Columns<E>>& d_made, const Weights<E>& weights,
                            const Gradients<G>& gradients, E* x, Workers& workers) const;
  /// Where the projections of attention put what they make.
  std::vector<Columns<E>> attention_columns(const BlockPlaces<E>& at) const;
  std::vector<Columns<E>> mlp_columns(const BlockPlaces<E>& at) const;
  RopeTables rope(const std::byte* tables) const;

  AttentionShape attention_shape() const {
    return {s_.batch, s_.sequence, s_.heads, s_.kv_heads, s_.head_dim, s_.window};
  }
  RopeShape rope_shape() const {
    return {s_.batch, s_.sequence, s_.heads + s_.kv_heads, s_.head_dim, s_.qkv_width()};
  }
  NormShape hidden_norm() const {
    return {s_.tokens(), 1, s_.hidden, s_.hidden, s_.hidden, s_.epsilon};
  }
  /// Of queries or keys: from a tensor of their own into the one of all.
  NormShape head_norm(std::int64_t heads) const {
    return {s_.tokens(), heads, s_.head_dim, heads * s_.head_dim, s_.qkv_width(), s_.epsilon};
  }
  LinearShape linear(std::int64_t in, std::int64_t out, std::int64_t y_stride) const {
    return {s_.tokens(), in, out, in, y_stride, s_.transposed};
  }

  BlockShape s_;
};

}  // namespace shardwise::exec
