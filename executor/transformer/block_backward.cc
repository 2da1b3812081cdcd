#include <algorithm>

#include "executor/kernels/gelu.h"
#include "executor/kernels/swiglu.h"
#include "executor/transformer/block_layer.h"

namespace shardwise::exec {

template <class E, class G>
void BlockLayer<E, G>::projections_backward(const std::vector<Projection>& projections,
                                            const std::vector<Columns<E>>& d_made,
                                            const Weights<E>& weights,
                                            const Gradients<G>& gradients, E* x,
                                            Workers& workers) const {
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    linear_backward_weight<E, G>(linear(s_.hidden, p.out, d_made[i].stride), x, d_made[i].data,
                                 gradients.weight(p.parameters), gradients.bias(p.parameters),
                                 workers);
  }
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    linear_backward_input<E>(linear(s_.hidden, p.out, d_made[i].stride), d_made[i].data,
                             weights.weight(p.parameters), x, i > 0, workers);
  }
}

template <class E, class G>
void BlockLayer<E, G>::mlp_half_backward(const BlockPlaces<E>& at, const Weights<E>& weights,
                                         const Gradients<G>& gradients, E* d_stream,
                                         Workers& workers) const {
  const LinearShape down = linear(s_.intermediate, s_.hidden, s_.hidden);
  linear_backward_weight<E, G>(down, at.activated, d_stream, gradients.weight(s_.down),
                               gradients.bias(s_.down), workers);
  E* d_activated = at.activated;
  linear_backward_input<E>(down, d_stream, weights.weight(s_.down), d_activated, false, workers);
  if (s_.gated) {
    swiglu_backward<E>(s_.tokens(), s_.intermediate, at.up, d_activated, workers);
  } else {
    gelu_backward<E>(s_.gelu, s_.tokens() * s_.intermediate, at.up, d_activated, at.up, workers);
  }
  projections_backward(s_.mlp, mlp_columns(at), weights, gradients, at.mlp_normed, workers);
  norm_backward<E, G>(s_.rms, hidden_norm(), s_.mlp_norm, weights, gradients, at.middle,
                      at.mlp_statistics, at.mlp_normed, d_stream, true, workers);
}

template <class E, class G>
void BlockLayer<E, G>::attention_half_backward(const BlockPlaces<E>& at, const Weights<E>& weights,
                                               const Gradients<G>& gradients, const E* x,
                                               std::byte* scratch, E* d_stream,
                                               Workers& workers) const {
  const AttentionScratch places = attention_scratch(s_, all_offsets(s_));
  auto* workspace = reinterpret_cast<float*>(scratch + places.workspace);
  E* d_attended = reinterpret_cast<E*>(scratch + places.d_attended);
  const LinearShape o = linear(s_.q_width(), s_.hidden, s_.hidden);
  linear_backward_weight<E, G>(o, at.attended, d_stream, gradients.weight(s_.o),
                               gradients.bias(s_.o), workers);
  linear_backward_input<E>(o, d_stream, weights.weight(s_.o), d_attended, false, workers);
  attention_backward<E>(attention_shape(), at.qkv, at.attended, at.log_sums, d_attended, workspace,
                        workers);
  if (s_.rope) rope_backward(rope_shape(), rope(at.tables), at.qkv, workers);
  if (s_.head_norms) {  // the gradients of queries and keys before their norms, in their places
    norm_backward<E, G>(s_.rms, head_norm(s_.heads), s_.q_norm, weights, gradients, at.queries,
                        at.q_statistics, at.qkv, at.queries, false, workers);
    norm_backward<E, G>(s_.rms, head_norm(s_.kv_heads), s_.k_norm, weights, gradients, at.keys,
                        at.k_statistics, at.qkv + s_.q_width(), at.keys, false, workers);
  }
  projections_backward(s_.attention, attention_columns(at), weights, gradients, at.normed, workers);
  norm_backward<E, G>(s_.rms, hidden_norm(), s_.attention_norm, weights, gradients, x,
                      at.attention_statistics, at.normed, d_stream, true, workers);
}

template <class E, class G>
BlockPlaces<E> BlockLayer<E, G>::backward_places(const BackwardPass& pass) const {
  const std::int64_t kept = s_.tokens() * s_.hidden * s_.element_bytes;
  BlockPlaces<E> at(all_offsets(s_), s_.recompute ? pass.workspace : pass.saved + kept);
  at.take(s_.again, again_offsets(s_), pass.workspace);
  at.tables = pass.tables;
  return at;
}

template <class E, class G>
void BlockLayer<E, G>::recompute(const BackwardPass& pass, Workers& workers) const {
  const Weights<E> weights(pass.weights);
  const BlockPlaces<E> at = backward_places(pass);
  const E* x = reinterpret_cast<const E*>(pass.saved);
  if (!s_.recompute) {
    if (s_.again.attention_norm) {
      norm_forward(s_.rms, hidden_norm(), s_.attention_norm, weights, x, at.normed,
                   at.attention_statistics, workers);
    }
    if (s_.again.attention) {
      attention_forward<E>(attention_shape(), at.qkv, at.attended, at.log_sums, workers);
    }
    if (s_.again.mlp_norm) {
      norm_forward(s_.rms, hidden_norm(), s_.mlp_norm, weights, at.middle, at.mlp_normed,
                   at.mlp_statistics, workers);
    }
    if (s_.again.activation) activate(at, workers);
    return;
  }
  std::copy_n(x, s_.tokens() * s_.hidden, at.middle);
  attention_half(at, weights, x, at.middle, workers);
  mlp_half(at, weights, at.middle, workers);
}

template <class E, class G>
void BlockLayer<E, G>::backward(const BackwardPass& pass, Workers& workers) const {
  const Weights<E> weights(pass.weights);
  const Gradients<G> gradients(pass.gradients);
  const BlockOffsets all = all_offsets(s_);
  const std::int64_t kept = s_.tokens() * s_.hidden * s_.element_bytes;
  const E* x = reinterpret_cast<const E*>(pass.saved);
  const BlockPlaces<E> at = backward_places(pass);
  E* d_stream = reinterpret_cast<E*>(pass.stream);
  mlp_half_backward(at, weights, gradients, d_stream, workers);
  const AttentionScratch fitting = attention_scratch(s_, all);
  const BlockOffsets again = again_offsets(s_);
  std::byte* scratch = pass.workspace + (s_.recompute ? all.bytes : again.bytes);
  if (fitting.fits) {
    scratch = (s_.recompute ? pass.workspace : pass.saved + kept) + all.second_half;
  } else if (fitting.fits_again) {
    scratch = pass.workspace + again.second_half;
  }
  attention_half_backward(at, weights, gradients, x, scratch, d_stream, workers);
}

template void BlockLayer<float, float>::recompute(const BackwardPass&, Workers&) const;
template void BlockLayer<Bf16, float>::recompute(const BackwardPass&, Workers&) const;
template void BlockLayer<Bf16, Bf16>::recompute(const BackwardPass&, Workers&) const;
template void BlockLayer<float, float>::backward(const BackwardPass&, Workers&) const;
template void BlockLayer<Bf16, float>::backward(const BackwardPass&, Workers&) const;
template void BlockLayer<Bf16, Bf16>::backward(const BackwardPass&, Workers&) const;

}  // namespace shardwise::exec
