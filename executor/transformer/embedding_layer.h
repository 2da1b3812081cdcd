#pragma once

#include "executor/transformer/layer.h"
#include "executor/transformer/parameters.h"

namespace shardwise::exec {

/// Rows of the token table, with those of the position table added where the model has one. Keeps
/// the token numbers. Where ranks share the table, each hands on its rows, with positions on the
/// first rank, and an all-reduce of the stream sums them. Under sequence parallelism a
/// reduce-scatter does, and backward gathers the stream's gradient.
class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape);

  LayerBytes bytes() const override;
  void meet(LayerRoom& room) const override;
  void forward(const ForwardPass& pass, const Issue& to) const override;
  void backward(const BackwardPass& pass, const Issue& to) const override;

 private:
  EmbeddingShape table() const;

  LayerShape shape_;
  std::int64_t hidden_;
  VocabularyPart part_;
  ParameterIndex tokens_;
  ParameterIndex positions_;
};

}  // namespace shardwise::exec
