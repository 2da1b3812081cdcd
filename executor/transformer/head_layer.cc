#include "executor/transformer/head_layer.h"

#include <algorithm>

#include "executor/transformer/weights.h"

namespace shardwise::exec {

HeadLayer::HeadLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape)
    : tokens_(shape.tokens()),
      stream_tokens_(shape.stream_tokens()),
      hidden_(model.hidden_size),
      dtype_(shape.storage),
      gradient_(shape.gradients),
      rms_(find_operation(layer, "final_norm")->rms),
      epsilon_(static_cast<float>(model.numerics.norm_epsilon)),
      norm_(parameters_of(layer, "final_norm")),
      matrix_(parameters_of(layer, "lm_head")),
      tp_(shape.tp),
      tp_rank_(shape.tp_rank),
      part_(vocabulary_part(model, shape)),
      loss_{tokens_, hidden_, model.vocab_size,
            shape.loss_chunk > 0 ? std::min(shape.loss_chunk, tokens_) : tokens_} {}

LayerBytes HeadLayer::bytes() const {
  LayerBytes bytes;
  bytes.saved = statistics() * static_cast<std::int64_t>(sizeof(float)) + 2 * stream_bytes();
  bytes.backward_workspace =
      tp_ == 1 ? cross_entropy_bytes(loss_, dtype_)
               : gathered_begin() + (gathers() ? tokens_ * hidden_ * bytes_of(dtype_) : 0);
  return bytes;
}

void HeadLayer::meet(LayerRoom& room) const {
  if (tp_ == 1) return;
  const std::int64_t normed =
      (statistics() * static_cast<std::int64_t>(sizeof(float)) + stream_bytes()) / bytes_of(dtype_);
  const MetTensor gathered = {
      OperandPart::layer_workspace, dtype_, gathered_begin() / bytes_of(dtype_), tokens_ * hidden_,
      stream_tokens_ * hidden_,     false,  MetPiece{OperandPart::saved, normed}};
  if (gathers()) room.met_backward = {gathered};
  constexpr std::int64_t kNumbers = sizeof(RowStatistics) / sizeof(float);
  for (std::int64_t number = 0; number < chunks(); ++number) {
    const std::int64_t own = rows(number) * kNumbers;
    room.met_backward.push_back({OperandPart::layer_workspace, DType::fp32,
                                 statistics_begin() / static_cast<std::int64_t>(sizeof(float)),
                                 tp_ * own, own});
  }
  room.met_backward.push_back(
      gathers() ? gathered : MetTensor{OperandPart::saved, dtype_, normed, tokens_ * hidden_, 0});
}

VocabularyWork HeadLayer::chunk(const BackwardPass& pass, std::int64_t number) const {
  const std::int64_t first = number * loss_.chunk;
  return {.shape = {rows(number), hidden_, part_.count, part_.first, tp_, tp_rank_},
          .dtype = dtype_,
          .gradient = gradient_,
          .x = (gathers() ? pass.workspace + gathered_begin() : places(pass.saved).normed) +
               first * hidden_ * bytes_of(dtype_),
          .weight = Weights(pass.weights).weight(matrix_),
          .targets = pass.targets + first,
          .scale = pass.loss_scale,
          .d_weight = Gradients(pass.gradients).weight(matrix_),
          .loss = pass.loss,
          .logits = pass.workspace + logits_begin(),
          .statistics = reinterpret_cast<RowStatistics*>(pass.workspace + statistics_begin()),
          .losses = reinterpret_cast<float*>(pass.workspace) + first};
}

HeadLayer::Places HeadLayer::places(std::byte* saved) const {
  std::byte* const x = saved + statistics() * static_cast<std::int64_t>(sizeof(float));
  return {reinterpret_cast<float*>(saved), x, x + stream_bytes()};
}

void HeadLayer::forward(const ForwardPass& pass, const Issue& to) const {
  const Places at = places(pass.saved);
  const Weights weights(pass.weights);
  to.compute.norm({.shape = norm_shape(),
                   .rms = rms_,
                   .dtype = dtype_,
                   .x = pass.stream,
                   .kept = at.x,
                   .weight = weights.weight(norm_),
                   .bias = weights.bias(norm_),
                   .y = at.normed,
                   .statistics = at.statistics},
                  to.stream);
}

void HeadLayer::backward(const BackwardPass& pass, const Issue& to) const {
  if (tp_ > 1) {
    const auto region = static_cast<std::int64_t>(pass.region);
    if (region > chunks()) return norm_backward(pass, to);
    if (region > 0) to.compute.vocabulary_gradients(chunk(pass, region - 1), to.stream);
    if (region < chunks()) to.compute.vocabulary_logits(chunk(pass, region), to.stream);
    return;
  }
  const Weights weights(pass.weights);
  const Gradients gradients(pass.gradients);
  const Places at = places(pass.saved);
  to.compute.head({.shape = loss_,
                   .dtype = dtype_,
                   .gradient = gradient_,
                   .x = at.normed,
                   .weight = weights.weight(matrix_),
                   .targets = pass.targets,
                   .scale = pass.loss_scale,
                   .d_weight = gradients.weight(matrix_),
                   .loss = pass.loss,
                   .workspace = pass.workspace},
                  to.stream);
  norm_backward(pass, to);
}

void HeadLayer::norm_backward(const BackwardPass& pass, const Issue& to) const {
  const Weights weights(pass.weights);
  const Gradients gradients(pass.gradients);
  const Places at = places(pass.saved);
  to.compute.norm_backward({.shape = norm_shape(),
                            .rms = rms_,
                            .dtype = dtype_,
                            .gradient = gradient_,
                            .x = at.x,
                            .weight = weights.weight(norm_),
                            .statistics = at.statistics,
                            .d_y = at.normed,
                            .d_x = pass.stream,
                            .d_weight = gradients.weight(norm_),
                            .d_bias = gradients.bias(norm_)},
                           to.stream);
}

}  // namespace shardwise::exec
