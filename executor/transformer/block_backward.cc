#include "executor/transformer/block_layer.h"

namespace shardwise::exec {

NormBackwardWork BlockLayer::norm_backward(const NormShape& shape, const ParameterIndex& index,
                                           const Weights& weights,
                                           const Gradients& gradients) const {
  return {.shape = shape,
          .rms = s_.rms,
          .dtype = s_.dtype,
          .gradient = s_.gradient,
          .weight = weights.weight(index),
          .d_weight = gradients.weight(index),
          .d_bias = gradients.bias(index)};
}

LinearBackwardWeightWork BlockLayer::weight_gradient(const LinearShape& shape,
                                                     const ParameterIndex& index,
                                                     const Gradients& gradients) const {
  return {.shape = shape,
          .dtype = s_.dtype,
          .gradient = s_.gradient,
          .d_weight = gradients.weight(index),
          .d_bias = gradients.bias(index)};
}

void BlockLayer::projections_backward(const std::vector<Projection>& projections,
                                      const std::vector<Columns>& d_made, const Weights& weights,
                                      const Gradients& gradients, std::byte* x,
                                      const Issue& to) const {
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    LinearBackwardWeightWork work =
        weight_gradient(linear(s_.hidden, p.out, d_made[i].stride), p.parameters, gradients);
    work.x = x;
    work.d_y = d_made[i].data;
    to.compute.linear_backward_weight(work, to.stream);
  }
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    to.compute.linear_backward_input({.shape = linear(s_.hidden, p.out, d_made[i].stride),
                                      .dtype = s_.dtype,
                                      .d_y = d_made[i].data,
                                      .weight = weights.weight(p.parameters),
                                      .d_x = x,
                                      .adds = i > 0},
                                     to.stream);
  }
}

void BlockLayer::mlp_half_backward(const BlockPlaces& at, const Weights& weights,
                                   const Gradients& gradients, const std::byte* d_stream,
                                   const Issue& to) const {
  const LinearShape down = linear(s_.intermediate, s_.hidden, s_.hidden);
  LinearBackwardWeightWork weight = weight_gradient(down, s_.down, gradients);
  weight.d_bias = row_bias(gradients, s_.down);
  weight.x = at.activated;
  weight.d_y = d_stream;
  to.compute.linear_backward_weight(weight, to.stream);
  LinearBackwardInputWork input = {.shape = down,
                                   .dtype = s_.dtype,
                                   .d_y = d_stream,
                                   .weight = weights.weight(s_.down),
                                   .d_x = at.activated};
  if (s_.gated) {
    to.compute.linear_backward_input(input, to.stream);
    to.compute.swiglu_backward({.rows = s_.tokens(),
                                .width = s_.intermediate,
                                .dtype = s_.dtype,
                                .gate_up = at.up,
                                .d_y = at.activated},
                               to.stream);
  } else {
    input.gelu = s_.gelu;
    input.before = at.up;
    to.compute.linear_backward_input(input, to.stream);
  }
}

/// The gradient of what the projections made is in its place, or in that of the activation.
void BlockLayer::mlp_up_backward(const BlockPlaces& at, const Weights& weights,
                                 const Gradients& gradients, const Issue& to) const {
  projections_backward(s_.mlp, mlp_columns(s_.gated ? at.up : at.activated), weights, gradients,
                       whole(at, at.mlp_normed), to);
}

void BlockLayer::mlp_norm_backward(const BlockPlaces& at, const Weights& weights,
                                   const Gradients& gradients, std::byte* d_stream,
                                   const Issue& to) const {
  NormBackwardWork before = norm_backward(hidden_norm(), s_.mlp_norm, weights, gradients);
  before.x = at.middle;
  before.statistics = at.mlp_statistics;
  before.d_y = at.mlp_normed;
  before.d_x = d_stream;
  before.adds = true;
  to.compute.norm_backward(before, to.stream);
}

void BlockLayer::attention_half_backward(const BlockPlaces& at, const Weights& weights,
                                         const Gradients& gradients, std::byte* scratch,
                                         const std::byte* d_stream, const Issue& to) const {
  const AttentionScratch places = attention_scratch(s_, all_offsets(s_));
  std::byte* const d_attended = scratch + places.d_attended;
  const LinearShape o = linear(s_.q_width(), s_.hidden, s_.hidden);
  LinearBackwardWeightWork weight = weight_gradient(o, s_.o, gradients);
  weight.d_bias = row_bias(gradients, s_.o);
  weight.x = at.attended;
  weight.d_y = d_stream;
  to.compute.linear_backward_weight(weight, to.stream);
  to.compute.linear_backward_input({.shape = o,
                                    .dtype = s_.dtype,
                                    .d_y = d_stream,
                                    .weight = weights.weight(s_.o),
                                    .d_x = d_attended},
                                   to.stream);
  to.compute.attention_backward({.shape = attention_shape(),
                                 .dtype = s_.dtype,
                                 .qkv = at.qkv,
                                 .out = at.attended,
                                 .log_sums = at.log_sums,
                                 .d_out = d_attended,
                                 .workspace = scratch + places.workspace},
                                to.stream);
  if (s_.rope) to.compute.rope(rope(at, true), to.stream);
  if (s_.head_norms) {  // the gradients of queries and keys before their norms, in their places
    NormBackwardWork queries = norm_backward(head_norm(s_.heads), s_.q_norm, weights, gradients);
    queries.x = queries.d_x = at.queries;
    queries.statistics = at.q_statistics;
    queries.d_y = at.qkv;
    to.compute.norm_backward(queries, to.stream);
    NormBackwardWork keys = norm_backward(head_norm(s_.kv_heads), s_.k_norm, weights, gradients);
    keys.x = keys.d_x = at.keys;
    keys.statistics = at.k_statistics;
    keys.d_y = at.qkv + s_.q_width() * s_.element_bytes();
    to.compute.norm_backward(keys, to.stream);
  }
}

void BlockLayer::qkv_backward(const BlockPlaces& at, const Weights& weights,
                              const Gradients& gradients, const Issue& to) const {
  projections_backward(s_.attention, attention_columns(at), weights, gradients,
                       whole(at, at.normed), to);
}

void BlockLayer::attention_norm_backward(const BlockPlaces& at, const Weights& weights,
                                         const Gradients& gradients, const std::byte* x,
                                         std::byte* d_stream, const Issue& to) const {
  NormBackwardWork before = norm_backward(hidden_norm(), s_.attention_norm, weights, gradients);
  before.x = x;
  before.statistics = at.attention_statistics;
  before.d_y = at.normed;
  before.d_x = d_stream;
  before.adds = true;
  to.compute.norm_backward(before, to.stream);
}

BlockPlaces BlockLayer::backward_places(const BackwardPass& pass) const {
  BlockPlaces at(all_offsets(s_), s_.recompute ? pass.workspace : pass.saved + s_.stream_bytes());
  at.take(s_.again, again_offsets(s_), pass.workspace);
  at.gathered = at.partial = pass.gathered;
  at.tables = pass.tables;
  return at;
}

void BlockLayer::recompute(const BackwardPass& pass, const Issue& to) const {
  const Weights weights(pass.weights);
  const BlockPlaces at = backward_places(pass);
  if (s_.recompute) {
    if (runs(pass.region, 0, 0)) attention_norm(at, weights, pass.saved, at.middle, to);
    if (runs(pass.region, 1, 0)) attention_half(at, weights, at.middle, to);
    if (runs(pass.region, 2, 1)) mlp_norm(at, weights, at.middle, nullptr, to);
    if (runs(pass.region, 3, 1)) mlp_half(at, weights, to);
    return;
  }
  if (s_.again.attention_norm) attention_norm(at, weights, pass.saved, nullptr, to);
  if (s_.again.attention) attend(at, to);
  if (s_.again.mlp_norm) mlp_norm(at, weights, at.middle, nullptr, to);
  if (s_.again.activation) activate(at, to);
}

void BlockLayer::backward(const BackwardPass& pass, const Issue& to) const {
  const Weights weights(pass.weights);
  const Gradients gradients(pass.gradients);
  const BlockOffsets all = all_offsets(s_);
  const BlockPlaces at = backward_places(pass);
  const std::byte* const d_stream = whole(at, pass.stream);
  if (runs(pass.region, 0, 0)) mlp_half_backward(at, weights, gradients, d_stream, to);
  if (runs(pass.region, 1, 0)) mlp_up_backward(at, weights, gradients, to);
  if (runs(pass.region, 2, 1)) mlp_norm_backward(at, weights, gradients, pass.stream, to);
  const AttentionScratch fitting = attention_scratch(s_, all);
  const BlockOffsets again = again_offsets(s_);
  std::byte* scratch = pass.workspace + (s_.recompute ? all.bytes : again.bytes);
  if (fitting.fits) {
    scratch = (s_.recompute ? pass.workspace : pass.saved + s_.stream_bytes()) + all.second_half;
  } else if (fitting.fits_again) {
    scratch = pass.workspace + again.second_half;
  }
  if (runs(pass.region, 3, 1)) {
    attention_half_backward(at, weights, gradients, scratch, d_stream, to);
  }
  if (runs(pass.region, 4, 1)) qkv_backward(at, weights, gradients, to);
  if (runs(pass.region, 5, 2)) {
    attention_norm_backward(at, weights, gradients, pass.saved, pass.stream, to);
  }
}

}  // namespace shardwise::exec
