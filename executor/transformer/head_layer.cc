#include "executor/transformer/head_layer.h"

#include <algorithm>

#include "executor/transformer/weights.h"

namespace shardwise::exec {

HeadLayer::HeadLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape)
    : tokens_(shape.tokens()),
      hidden_(model.hidden_size),
      dtype_(shape.storage),
      gradient_(shape.gradients),
      rms_(find_operation(layer, "final_norm")->rms),
      epsilon_(static_cast<float>(model.numerics.norm_epsilon)),
      norm_(parameters_of(layer, "final_norm")),
      matrix_(parameters_of(layer, "lm_head")),
      loss_{tokens_, hidden_, model.vocab_size,
            shape.loss_chunk > 0 ? std::min(shape.loss_chunk, tokens_) : tokens_} {}

LayerBytes HeadLayer::bytes() const {
  LayerBytes bytes;
  bytes.saved = statistics() * static_cast<std::int64_t>(sizeof(float)) + 2 * stream_bytes();
  bytes.backward_workspace = cross_entropy_bytes(loss_, dtype_);
  return bytes;
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
