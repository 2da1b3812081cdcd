#include "executor/transformer/embedding_layer.h"

#include "executor/transformer/weights.h"

namespace shardwise::exec {

EmbeddingLayer::EmbeddingLayer(const ModelSpec& model, const LayerSpec& layer,
                               const LayerShape& shape)
    : shape_(shape),
      hidden_(model.hidden_size),
      tokens_(parameters_of(layer, "token_embedding")),
      positions_(parameters_of(layer, "position_embedding")) {}

LayerBytes EmbeddingLayer::bytes() const {
  LayerBytes bytes;
  bytes.saved = shape_.tokens() * static_cast<std::int64_t>(sizeof(std::int64_t));
  return bytes;
}

void EmbeddingLayer::forward(const ForwardPass& pass, const Issue& to) const {
  const Weights weights(pass.weights);
  to.compute.embedding({.shape = {shape_.batch, shape_.sequence, hidden_},
                        .dtype = shape_.storage,
                        .tokens = pass.inputs,
                        .kept = reinterpret_cast<std::int64_t*>(pass.saved),
                        .table = weights.weight(tokens_),
                        .positions = weights.weight(positions_),
                        .y = pass.stream},
                       to.stream);
}

void EmbeddingLayer::backward(const BackwardPass& pass, const Issue& to) const {
  const Gradients gradients(pass.gradients);
  to.compute.embedding_backward({.shape = {shape_.batch, shape_.sequence, hidden_},
                                 .dtype = shape_.storage,
                                 .gradient = shape_.gradients,
                                 .tokens = reinterpret_cast<const std::int64_t*>(pass.saved),
                                 .d_y = pass.stream,
                                 .d_table = gradients.weight(tokens_),
                                 .d_positions = gradients.weight(positions_)},
                                to.stream);
}

}  // namespace shardwise::exec
