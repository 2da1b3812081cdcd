#include "executor/transformer/block_layer.h"

#include "planner/spec/text/check.h"

namespace shardwise::exec {

BlockLayer::BlockLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape)
    : s_(block_shape(model, layer, shape)) {}

LayerBytes BlockLayer::bytes() const {
  LayerBytes bytes = block_bytes(s_);
  if (s_.rope) bytes.tables = s_.sequence * s_.head_dim * static_cast<std::int64_t>(sizeof(float));
  return bytes;
}

NormWork BlockLayer::norm(const NormShape& shape, const ParameterIndex& index,
                          const Weights& weights) const {
  return {.shape = shape,
          .rms = s_.rms,
          .dtype = s_.dtype,
          .weight = weights.weight(index),
          .bias = weights.bias(index)};
}

void BlockLayer::attention_norm(const BlockPlaces& at, const Weights& weights, const std::byte* x,
                                std::byte* kept, const Issue& to) const {
  NormWork work = norm(hidden_norm(), s_.attention_norm, weights);
  work.x = x;
  work.kept = kept;
  work.y = at.normed;
  work.statistics = at.attention_statistics;
  to.compute.norm(work, to.stream);
}

void BlockLayer::mlp_norm(const BlockPlaces& at, const Weights& weights, const std::byte* middle,
                          std::byte* kept, const Issue& to) const {
  NormWork work = norm(hidden_norm(), s_.mlp_norm, weights);
  work.x = middle;
  work.kept = kept;
  work.y = at.mlp_normed;
  work.statistics = at.mlp_statistics;
  to.compute.norm(work, to.stream);
}

void BlockLayer::activate(const BlockPlaces& at, const Issue& to) const {
  if (s_.gated) {
    return to.compute.swiglu({.rows = s_.tokens(),
                              .width = s_.intermediate,
                              .dtype = s_.dtype,
                              .gate_up = at.up,
                              .y = at.activated},
                             to.stream);
  }
  to.compute.gelu({.kind = s_.gelu,
                   .count = s_.tokens() * s_.intermediate,
                   .dtype = s_.dtype,
                   .x = at.up,
                   .y = at.activated},
                  to.stream);
}

RopeWork BlockLayer::rope(const BlockPlaces& at, bool backward) const {
  const auto* cosines = reinterpret_cast<const float*>(at.tables);
  return {.shape = rope_shape(),
          .dtype = s_.dtype,
          .tables = {cosines, cosines + s_.sequence * (s_.head_dim / 2)},
          .x = at.qkv,
          .backward = backward};
}

std::vector<Columns> BlockLayer::attention_columns(const BlockPlaces& at) const {
  const std::int64_t width = s_.qkv_width();
  if (s_.attention.size() == 1) return {{at.qkv, width}};
  std::byte* const keys = at.qkv + s_.q_width() * s_.element_bytes();
  const Columns values = {keys + s_.kv_width() * s_.element_bytes(), width};
  if (s_.head_norms) return {{at.queries, s_.q_width()}, {at.keys, s_.kv_width()}, values};
  return {{at.qkv, width}, {keys, width}, values};
}

std::vector<Columns> BlockLayer::mlp_columns(std::byte* up) const {
  if (s_.mlp.size() == 1) return {{up, s_.up_width()}};
  return {{up, s_.up_width()}, {up + s_.intermediate * s_.element_bytes(), s_.up_width()}};
}

void BlockLayer::project(const std::vector<Projection>& projections,
                         const std::vector<Columns>& made, const Weights& weights,
                         const std::byte* x, std::optional<Gelu> gelu, std::byte* activated,
                         const Issue& to) const {
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Projection& p = projections[i];
    to.compute.linear({.shape = linear(s_.hidden, p.out, made[i].stride),
                       .dtype = s_.dtype,
                       .x = x,
                       .weight = weights.weight(p.parameters),
                       .bias = weights.bias(p.parameters),
                       .y = made[i].data,
                       .gelu = gelu,
                       .activated = activated},
                      to.stream);
  }
}

void BlockLayer::attend(const BlockPlaces& at, const Issue& to) const {
  to.compute.attention({.shape = attention_shape(),
                        .dtype = s_.dtype,
                        .qkv = at.qkv,
                        .out = at.attended,
                        .log_sums = at.log_sums},
                       to.stream);
}

void BlockLayer::attention_half(const BlockPlaces& at, const Weights& weights, std::byte* stream,
                                const Issue& to) const {
  project(s_.attention, attention_columns(at), weights, whole(at, at.normed), {}, nullptr, to);
  if (s_.head_norms) {
    NormWork queries = norm(head_norm(s_.heads), s_.q_norm, weights);
    queries.x = at.queries;
    queries.y = at.qkv;
    queries.statistics = at.q_statistics;
    to.compute.norm(queries, to.stream);
    NormWork keys = norm(head_norm(s_.kv_heads), s_.k_norm, weights);
    keys.x = at.keys;
    keys.y = at.qkv + s_.q_width() * s_.element_bytes();
    keys.statistics = at.k_statistics;
    to.compute.norm(keys, to.stream);
  }
  if (s_.rope) to.compute.rope(rope(at, false), to.stream);
  attend(at, to);
  add_to_stream(linear(s_.q_width(), s_.hidden, s_.hidden), s_.o, at, at.attended, weights, stream,
                to);
}

void BlockLayer::add_to_stream(const LinearShape& shape, const ParameterIndex& index,
                               const BlockPlaces& at, const std::byte* x, const Weights& weights,
                               std::byte* stream, const Issue& to) const {
  to.compute.linear({.shape = shape,
                     .dtype = s_.dtype,
                     .x = x,
                     .weight = weights.weight(index),
                     .bias = s_.leads ? weights.bias(index) : nullptr,
                     .y = spreads() ? at.partial : stream,
                     .adds = s_.leads && !spreads()},
                    to.stream);
}

void BlockLayer::mlp_half(const BlockPlaces& at, const Weights& weights, const Issue& to) const {
  const std::byte* const x = whole(at, at.mlp_normed);
  const std::vector<Columns> made = mlp_columns(at.up);
  // Where the activation takes the place of what the product reads, it is an operation of its own.
  if (!s_.gated && at.activated != at.mlp_normed) {
    return project(s_.mlp, made, weights, x, s_.gelu, at.activated, to);
  }
  project(s_.mlp, made, weights, x, {}, nullptr, to);
  activate(at, to);
}

BlockPlaces BlockLayer::forward_places(const ForwardPass& pass) const {
  BlockPlaces at = [&] {
    if (s_.recompute) {
      const BlockOffsets passing = passing_offsets(s_);
      BlockPlaces places(passing, pass.workspace);
      places.gathered = pass.workspace + passing.gathered;
      places.partial = pass.workspace + passing.partial;
      return places;
    }
    std::byte* const kept = pass.saved + s_.stream_bytes();
    const BlockOffsets all = all_offsets(s_);
    BlockPlaces places(all, kept);
    const PassingPlaces passed = passing_places(s_);
    if (spreads()) places.gathered = places.partial = pass.workspace + passed.workspace;
    if (!s_.again.any()) return places;
    // A norm's result before its statistics, attention's before the sums of its rows.
    std::byte* const first = passed.in_saved ? kept + all.second_half : pass.workspace;
    std::byte* const second = passed.in_activated ? kept + all.activated : pass.workspace;
    BlockOffsets passing;
    passing.attention_statistics = s_.stream_bytes();
    passing.log_sums = s_.tokens() * s_.q_width() * s_.element_bytes();
    passing.mlp_statistics = s_.stream_bytes();
    places.take({s_.again.attention_norm, s_.again.attention, false, false}, passing, first);
    places.take({false, false, s_.again.mlp_norm, false}, passing, second);
    places.take({false, false, false, s_.again.activation}, passing, pass.workspace);
    return places;
  }();
  at.tables = pass.tables;
  return at;
}

void BlockLayer::forward(const ForwardPass& pass, const Issue& to) const {
  SHARDWISE_CHECK(pass.region < (spreads() ? 4U : 2U), "regions of a block's forward pass");
  const Weights weights(pass.weights);
  const BlockPlaces at = forward_places(pass);
  if (runs(pass.region, 0, 0)) attention_norm(at, weights, pass.stream, pass.saved, to);
  if (runs(pass.region, 1, 0)) attention_half(at, weights, pass.stream, to);
  if (runs(pass.region, 2, 1)) {
    mlp_norm(at, weights, pass.stream, s_.recompute ? nullptr : at.middle, to);
  }
  if (!runs(pass.region, 3, 1)) return;
  mlp_half(at, weights, to);
  add_to_stream(linear(s_.intermediate, s_.hidden, s_.hidden), s_.down, at, at.activated, weights,
                pass.stream, to);
}

void BlockLayer::meet(LayerRoom& room) const {
  if (!s_.shared) return;
  if (spreads()) return meet_spread(room);
  const std::int64_t count = s_.tokens() * s_.hidden;
  const auto in = [&](OperandPart part, std::int64_t byte) {
    return MetTensor{part, s_.dtype, byte / s_.element_bytes(), count, 0};
  };
  const MetTensor stream = in(OperandPart::stream, 0);
  room.met_forward = {stream, stream};
  const BlockOffsets all = all_offsets(s_);
  const BlockOffsets again = again_offsets(s_);
  if (s_.recompute) {
    room.met_recompute = {in(OperandPart::layer_workspace, all.middle)};
    room.met_backward = {in(OperandPart::layer_workspace, all.mlp_normed),
                         in(OperandPart::layer_workspace, all.normed)};
    return;
  }
  const auto norm = [&](bool made_again, std::int64_t kept, std::int64_t made) {
    return made_again ? in(OperandPart::layer_workspace, made)
                      : in(OperandPart::saved, s_.stream_bytes() + kept);
  };
  room.met_backward = {norm(s_.again.mlp_norm, all.mlp_normed, again.mlp_normed),
                       norm(s_.again.attention_norm, all.normed, again.normed)};
}

/// Each collective between a rank's part of what a norm makes, or of the stream, and a tensor of
/// all tokens.
void BlockLayer::meet_spread(LayerRoom& room) const {
  const std::int64_t piece = s_.stream_tokens() * s_.hidden;
  const auto at = [&](OperandPart part, std::int64_t byte, bool adds = false) {
    return MetPiece{part, byte / s_.element_bytes(), adds};
  };
  const auto in_workspace = [&](std::int64_t begin, const MetPiece& own) {
    return MetTensor{OperandPart::layer_workspace,
                     s_.dtype,
                     begin / s_.element_bytes(),
                     s_.spread * piece,
                     piece,
                     false,
                     own};
  };
  const auto apart = [&](const MetPiece& own) {
    MetTensor tensor = in_workspace(0, own);
    tensor.apart = true;
    return tensor;
  };
  using enum OperandPart;
  const BlockOffsets all = all_offsets(s_);
  const BlockOffsets again = again_offsets(s_);
  const BlockOffsets passing = passing_offsets(s_);
  const PassingPlaces passed = passing_places(s_);
  const std::int64_t kept = s_.stream_bytes();
  const MetTensor gradient = apart(at(stream, 0));
  if (s_.recompute) {
    const MetTensor partial = in_workspace(passing.partial, at(stream, 0, true));
    room.met_forward = {
        in_workspace(passing.gathered, at(layer_workspace, passing.normed)), partial,
        in_workspace(passing.gathered, at(layer_workspace, passing.mlp_normed)), partial};
    const MetTensor normed = apart(at(layer_workspace, all.normed));
    const MetTensor mlp_normed = apart(at(layer_workspace, all.mlp_normed));
    room.met_recompute = {normed, apart(at(layer_workspace, all.middle, true)), mlp_normed};
    room.met_backward = {gradient, mlp_normed, mlp_normed, gradient, normed, normed};
    return;
  }
  const auto passes = [&](bool made_again, bool in_saved, std::int64_t over, std::int64_t place) {
    if (!made_again) return at(saved, kept + place);
    return in_saved ? at(saved, kept + over) : at(layer_workspace, 0);
  };
  const MetTensor partial = in_workspace(passed.workspace, at(stream, 0, true));
  room.met_forward = {
      in_workspace(passed.workspace,
                   passes(s_.again.attention_norm, passed.in_saved, all.second_half, all.normed)),
      partial,
      in_workspace(passed.workspace,
                   passes(s_.again.mlp_norm, passed.in_activated, all.activated, all.mlp_normed)),
      partial};
  const auto norm = [&](bool made_again, std::int64_t made, std::int64_t place) {
    return apart(made_again ? at(layer_workspace, made) : at(saved, kept + place));
  };
  const MetTensor normed = norm(s_.again.attention_norm, again.normed, all.normed);
  const MetTensor mlp_normed = norm(s_.again.mlp_norm, again.mlp_normed, all.mlp_normed);
  room.met_backward = {gradient, mlp_normed, mlp_normed, gradient, normed, normed};
}

}  // namespace shardwise::exec
