#include "executor/transformer/block_layer.h"

#include <algorithm>

#include "executor/kernels/gelu.h"
#include "executor/kernels/swiglu.h"

namespace shardwise::exec {

template <class E, class G>
BlockLayer<E, G>::BlockLayer(const ModelSpec& model, const LayerSpec& layer,
                             const LayerShape& shape)
    : s_(block_shape(model, layer, shape)) {}

template <class E, class G>
LayerBytes BlockLayer<E, G>::bytes() const {
  LayerBytes bytes = block_bytes(s_);
  if (s_.rope) bytes.tables = s_.sequence * s_.head_dim * static_cast<std::int64_t>(sizeof(float));
  return bytes;
}

template <class E, class G>
RopeTables BlockLayer<E, G>::rope(const std::byte* tables) const {
  const auto* cosines = reinterpret_cast<const float*>(tables);
  return {cosines, cosines + s_.sequence * (s_.head_dim / 2)};
}

template <class E, class G>
std::vector<Columns<E>> BlockLayer<E, G>::attention_columns(const BlockPlaces<E>& at) const {
  const std::int64_t width = s_.qkv_width();
  if (s_.attention.size() == 1) return {{at.qkv, width}};
  E* keys = at.qkv + s_.q_width();
  const Columns<E> values = {keys + s_.kv_width(), width};
  if (s_.head_norms) return {{at.queries, s_.q_width()}, {at.keys, s_.kv_width()}, values};
  return {{at.qkv, width}, {keys, width}, values};
}

template <class E, class G>
std::vector<Columns<E>> BlockLayer<E, G>::mlp_columns(const BlockPlaces<E>& at) const {
  if (s_.mlp.size() == 1) return {{at.up, s_.up_width()}};
  return {{at.up, s_.up_width()}, {at.up + s_.intermediate, s_.up_width()}};
}

template <class E, class G>
void BlockLayer<E, G>::attention_half(const BlockPlaces<E>& at, const Weights<E>& weights,
                                      const E* x, E* stream, Workers& workers) const {
  norm_forward(s_.rms, hidden_norm(), s_.attention_norm, weights, x, at.normed,
               at.attention_statistics, workers);
  const std::vector<Columns<E>> made = attention_columns(at);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Projection& p = s_.attention[i];
    linear_forward<E>(linear(s_.hidden, p.out, made[i].stride), at.normed,
                      weights.weight(p.parameters), weights.bias(p.parameters), made[i].data, false,
                      workers);
  }
  if (s_.head_norms) {
    norm_forward<E>(s_.rms, head_norm(s_.heads), s_.q_norm, weights, at.queries, at.qkv,
                    at.q_statistics, workers);
    norm_forward<E>(s_.rms, head_norm(s_.kv_heads), s_.k_norm, weights, at.keys,
                    at.qkv + s_.q_width(), at.k_statistics, workers);
  }
  if (s_.rope) rope_forward(rope_shape(), rope(at.tables), at.qkv, workers);
  attention_forward<E>(attention_shape(), at.qkv, at.attended, at.log_sums, workers);
  linear_forward<E>(linear(s_.q_width(), s_.hidden, s_.hidden), at.attended, weights.weight(s_.o),
                    weights.bias(s_.o), stream, true, workers);
}

template <class E, class G>
void BlockLayer<E, G>::activate(const BlockPlaces<E>& at, Workers& workers) const {
  if (s_.gated) {
    swiglu_forward<E>(s_.tokens(), s_.intermediate, at.up, at.activated, workers);
  } else {
    gelu_forward<E>(s_.gelu, s_.tokens() * s_.intermediate, at.up, at.activated, workers);
  }
}

template <class E, class G>
void BlockLayer<E, G>::mlp_half(const BlockPlaces<E>& at, const Weights<E>& weights,
                                const E* middle, Workers& workers) const {
  norm_forward(s_.rms, hidden_norm(), s_.mlp_norm, weights, middle, at.mlp_normed,
               at.mlp_statistics, workers);
  const std::vector<Columns<E>> made = mlp_columns(at);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Projection& p = s_.mlp[i];
    linear_forward<E>(linear(s_.hidden, p.out, made[i].stride), at.mlp_normed,
                      weights.weight(p.parameters), weights.bias(p.parameters), made[i].data, false,
                      workers);
  }
  activate(at, workers);
}

template <class E, class G>
BlockPlaces<E> BlockLayer<E, G>::forward_places(const ForwardPass& pass) const {
  if (s_.recompute) return BlockPlaces<E>(passing_offsets(s_), pass.workspace);
  std::byte* const kept = pass.saved + s_.tokens() * s_.hidden * s_.element_bytes;
  const BlockOffsets all = all_offsets(s_);
  BlockPlaces<E> at(all, kept);
  if (!s_.again.any()) return at;
  const PassingPlaces places = passing_places(s_);
  // A norm's result before its statistics, attention's before the sums of its rows.
  std::byte* const first = places.in_saved ? kept + all.second_half : pass.workspace;
  std::byte* const second = places.in_activated ? kept + all.activated : pass.workspace;
  const std::int64_t stream = s_.tokens() * s_.hidden * s_.element_bytes;
  const std::int64_t attended = s_.tokens() * s_.q_width() * s_.element_bytes;
  BlockOffsets passing;
  passing.attention_statistics = stream;
  passing.log_sums = attended;
  passing.mlp_statistics = stream;
  at.take({s_.again.attention_norm, s_.again.attention, false, false}, passing, first);
  at.take({false, false, s_.again.mlp_norm, false}, passing, second);
  at.take({false, false, false, s_.again.activation}, passing, pass.workspace);
  return at;
}

template <class E, class G>
void BlockLayer<E, G>::forward(const ForwardPass& pass, Workers& workers) const {
  const Weights<E> weights(pass.weights);
  const std::int64_t elements = s_.tokens() * s_.hidden;
  E* stream = reinterpret_cast<E*>(pass.stream);
  E* x = reinterpret_cast<E*>(pass.saved);
  std::copy_n(stream, elements, x);
  BlockPlaces<E> at = forward_places(pass);
  at.tables = pass.tables;
  attention_half(at, weights, x, stream, workers);
  if (!s_.recompute) std::copy_n(stream, elements, at.middle);
  mlp_half(at, weights, stream, workers);
  linear_forward<E>(linear(s_.intermediate, s_.hidden, s_.hidden), at.activated,
                    weights.weight(s_.down), weights.bias(s_.down), stream, true, workers);
}

template class BlockLayer<float, float>;
template class BlockLayer<Bf16, float>;
template class BlockLayer<Bf16, Bf16>;

}  // namespace shardwise::exec
