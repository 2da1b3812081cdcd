#pragma once

#include <optional>
#include <vector>

#include "executor/transformer/block_memory.h"
#include "executor/transformer/block_places.h"
#include "executor/transformer/block_shape.h"
#include "executor/transformer/layer.h"
#include "executor/transformer/weights.h"

namespace shardwise::exec {

/// x + attention(norm(x)), then x + feed_forward(norm(x)): GPT-2, Llama, Mistral, Qwen2, Qwen3.
///
/// Products add to the residual stream, so that it is one tensor; in backward a product's weight
/// gradient comes first and its input's gradient then takes the input's place.
///
/// Where ranks share it, each has whole heads and a part of the feed-forward's width. Both products
/// that end a half sum over them: the first rank's adds to the stream, with its bias, the others
/// take the stream's place, and an all-reduce of the stream sums them. In backward the gradient of
/// what a norm hands to its projections is summed so.
///
/// Under sequence parallelism norms and the stream have a rank's tokens. What a norm makes is
/// gathered for the projections, and again in backward, as it is kept in parts alone. The products
/// that end a half make a tensor of all tokens, which a reduce-scatter adds to the stream. Backward
/// gathers the stream's gradient for them.
class BlockLayer final : public Layer {
 public:
  BlockLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape);

  LayerBytes bytes() const override;
  void meet(LayerRoom& room) const override;
  void forward(const ForwardPass& pass, const Issue& to) const override;
  void recompute(const BackwardPass& pass, const Issue& to) const override;
  void backward(const BackwardPass& pass, const Issue& to) const override;

 private:
  /// Places of forward's results: where it is kept, else where it passes by.
  BlockPlaces forward_places(const ForwardPass& pass) const;
  /// Places that backward reads: in the workspace where it is computed again, else kept.
  BlockPlaces backward_places(const BackwardPass& pass) const;
  // A norm of the stream; `kept`, if not null, receives a copy of what it reads.
  void attention_norm(const BlockPlaces& at, const Weights& weights, const std::byte* x,
                      std::byte* kept, const Issue& to) const;
  void mlp_norm(const BlockPlaces& at, const Weights& weights, const std::byte* middle,
                std::byte* kept, const Issue& to) const;
  /// Runs from what the norm made to what attention adds to `stream`.
  void attention_half(const BlockPlaces& at, const Weights& weights, std::byte* stream,
                      const Issue& to) const;
  void attend(const BlockPlaces& at, const Issue& to) const;
  /// Runs from what the norm made to the activation.
  void mlp_half(const BlockPlaces& at, const Weights& weights, const Issue& to) const;
  /// The product that ends a half, added to `stream`, or left in a tensor of all tokens.
  void add_to_stream(const LinearShape& shape, const ParameterIndex& index, const BlockPlaces& at,
                     const std::byte* x, const Weights& weights, std::byte* stream,
                     const Issue& to) const;
  // Each half of a backward pass up to the gradient of what its projections made, theirs, and the
  // norm's.
  void mlp_half_backward(const BlockPlaces& at, const Weights& weights, const Gradients& gradients,
                         const std::byte* d_stream, const Issue& to) const;
  void mlp_up_backward(const BlockPlaces& at, const Weights& weights, const Gradients& gradients,
                       const Issue& to) const;
  void mlp_norm_backward(const BlockPlaces& at, const Weights& weights, const Gradients& gradients,
                         std::byte* d_stream, const Issue& to) const;
  void attention_half_backward(const BlockPlaces& at, const Weights& weights,
                               const Gradients& gradients, std::byte* scratch,
                               const std::byte* d_stream, const Issue& to) const;
  void qkv_backward(const BlockPlaces& at, const Weights& weights, const Gradients& gradients,
                    const Issue& to) const;
  void attention_norm_backward(const BlockPlaces& at, const Weights& weights,
                               const Gradients& gradients, const std::byte* x, std::byte* d_stream,
                               const Issue& to) const;
  /// Issues several projections of one input.
  void project(const std::vector<Projection>& projections, const std::vector<Columns>& made,
               const Weights& weights, const std::byte* x, std::optional<Gelu> gelu,
               std::byte* activated, const Issue& to) const;
  /// The gradient of what several projections read, in its place, from those of what they made.
  void projections_backward(const std::vector<Projection>& projections,
                            const std::vector<Columns>& d_made, const Weights& weights,
                            const Gradients& gradients, std::byte* x, const Issue& to) const;
  /// Where the projections of attention put what they make.
  std::vector<Columns> attention_columns(const BlockPlaces& at) const;
  std::vector<Columns> mlp_columns(std::byte* up) const;

  NormWork norm(const NormShape& shape, const ParameterIndex& index, const Weights& weights) const;
  NormBackwardWork norm_backward(const NormShape& shape, const ParameterIndex& index,
                                 const Weights& weights, const Gradients& gradients) const;
  LinearBackwardWeightWork weight_gradient(const LinearShape& shape, const ParameterIndex& index,
                                           const Gradients& gradients) const;
  void activate(const BlockPlaces& at, const Issue& to) const;
  RopeWork rope(const BlockPlaces& at, bool backward) const;

  /// Whether a call of a pass, which is for one region where ranks share the block, runs this one.
  /// \param spread  the region under sequence parallelism \param whole  without it
  bool runs(std::size_t asked, std::size_t spread, std::size_t whole) const {
    return !s_.shared || asked == (spreads() ? spread : whole);
  }
  bool spreads() const { return s_.spread > 1; }
  /// The gathered tensor where the stream is spread over ranks.
  std::byte* whole(const BlockPlaces& at, std::byte* own) const {
    return spreads() ? at.gathered : own;
  }
  /// The gradient of a bias behind a sum over ranks, which is the same on all. Under sequence
  /// parallelism the step's end sums it, so that the first rank alone has it.
  std::byte* row_bias(const Gradients& gradients, const ParameterIndex& index) const {
    return spreads() && !s_.leads ? nullptr : gradients.bias(index);
  }
  void meet_spread(LayerRoom& room) const;

  AttentionShape attention_shape() const {
    return {s_.batch, s_.sequence, s_.heads, s_.kv_heads, s_.head_dim, s_.window};
  }
  RopeShape rope_shape() const {
    return {s_.batch, s_.sequence, s_.heads + s_.kv_heads, s_.head_dim, s_.qkv_width()};
  }
  NormShape hidden_norm() const {
    return {s_.stream_tokens(), 1, s_.hidden, s_.hidden, s_.hidden, s_.epsilon};
  }
  /// Norm of queries or keys: from a tensor of their own into the one of all.
  NormShape head_norm(std::int64_t heads) const {
    return {s_.tokens(), heads, s_.head_dim, heads * s_.head_dim, s_.qkv_width(), s_.epsilon};
  }
  LinearShape linear(std::int64_t in, std::int64_t out, std::int64_t y_stride) const {
    return {s_.tokens(), in, out, in, y_stride, s_.transposed};
  }

  BlockShape s_;
};

}  // namespace shardwise::exec
