#include "executor/transformer/embedding_layer.h"

#include "executor/transformer/weights.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

EmbeddingLayer::EmbeddingLayer(const ModelSpec& model, const LayerSpec& layer,
                               const LayerShape& shape)
    : shape_(shape),
      hidden_(model.hidden_size),
      part_(vocabulary_part(model, shape)),
      tokens_(parameters_of(layer, "token_embedding")),
      positions_(parameters_of(layer, "position_embedding")) {}

LayerBytes EmbeddingLayer::bytes() const {
  LayerBytes bytes;
  bytes.saved = shape_.tokens() * static_cast<std::int64_t>(sizeof(std::int64_t));
  if (shape_.sequence_parallel) {
    bytes.forward_workspace = bytes.backward_workspace =
        shape_.tokens() * hidden_ * bytes_of(shape_.storage);
  }
  return bytes;
}

EmbeddingShape EmbeddingLayer::table() const {
  EmbeddingShape table = {shape_.batch, shape_.sequence, hidden_};
  if (shape_.tp == 1) return table;
  table.first = part_.first;
  table.rows = part_.count;
  return table;
}

void EmbeddingLayer::meet(LayerRoom& room) const {
  if (shape_.tp == 1) return;
  const std::int64_t all = shape_.tokens() * hidden_;
  if (!shape_.sequence_parallel) {
    room.met_forward = {{OperandPart::stream, shape_.storage, 0, all, 0}};
    return;
  }
  room.met_forward = {{OperandPart::layer_workspace, shape_.storage, 0, all,
                       shape_.stream_tokens() * hidden_, false, MetPiece{}}};
  room.met_backward = room.met_forward;
}

void EmbeddingLayer::forward(const ForwardPass& pass, const Issue& to) const {
  SHARDWISE_CHECK(pass.region == 0, "an embedding's forward pass is one region");
  const Weights weights(pass.weights);
  to.compute.embedding({.shape = table(),
                        .dtype = shape_.storage,
                        .tokens = pass.inputs,
                        .kept = reinterpret_cast<std::int64_t*>(pass.saved),
                        .table = weights.weight(tokens_),
                        .positions = shape_.tp_rank == 0 ? weights.weight(positions_) : nullptr,
                        .y = shape_.sequence_parallel ? pass.workspace : pass.stream},
                       to.stream);
}

void EmbeddingLayer::backward(const BackwardPass& pass, const Issue& to) const {
  const Gradients gradients(pass.gradients);
  // What the step's end sums over ranks is the first one's, as all have the same.
  const bool summed = shape_.sequence_parallel && shape_.tp_rank > 0;
  to.compute.embedding_backward({.shape = table(),
                                 .dtype = shape_.storage,
                                 .gradient = shape_.gradients,
                                 .tokens = reinterpret_cast<const std::int64_t*>(pass.saved),
                                 .d_y = shape_.sequence_parallel ? pass.workspace : pass.stream,
                                 .d_table = gradients.weight(tokens_),
                                 .d_positions = summed ? nullptr : gradients.weight(positions_)},
                                to.stream);
}

}  // namespace shardwise::exec
