#pragma once

#include "executor/transformer/layer.h"
#include "executor/transformer/parameters.h"

namespace shardwise::exec {

/// The last norm, then the projection to the vocabulary with the loss. Forward keeps what the loss
/// reads; logits, loss and their gradients are made in backward, chunk by chunk.
class HeadLayer final : public Layer {
 public:
  HeadLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape);

  LayerBytes bytes() const override;
  void forward(const ForwardPass& pass, const Issue& to) const override;
  void backward(const BackwardPass& pass, const Issue& to) const override;

 private:
  /// [tokens, hidden] the input, the same normed, and the norm's statistics.
  struct Places {
    float* statistics = nullptr;
    std::byte* x = nullptr;
    std::byte* normed = nullptr;
  };
  Places places(std::byte* saved) const;
  std::int64_t statistics() const { return tokens_ * (rms_ ? 1 : 2); }
  NormShape norm_shape() const { return {tokens_, 1, hidden_, hidden_, hidden_, epsilon_}; }

  std::int64_t stream_bytes() const { return tokens_ * hidden_ * bytes_of(dtype_); }

  std::int64_t tokens_;
  std::int64_t hidden_;
  DType dtype_;
  DType gradient_;
  bool rms_;
  float epsilon_;
  ParameterIndex norm_;
  ParameterIndex matrix_;
  CrossEntropyShape loss_;
};

}  // namespace shardwise::exec
