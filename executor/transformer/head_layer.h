#pragma once

#include <algorithm>
#include <cstdint>

#include "executor/transformer/layer.h"
#include "executor/transformer/parameters.h"

namespace shardwise::exec {

/// The last norm, then the projection to the vocabulary with the loss. Forward keeps what the loss
/// reads; logits, loss and their gradients are made in backward, chunk by chunk.
///
/// Where ranks share the vocabulary, a backward pass has a region before the first chunk's
/// all-gather of what ranks know of their logits, one after each, and the norm's behind the
/// all-reduce of the gradient of what it made. Under sequence parallelism the pass begins with a
/// gather of what the norm made, whose gradient a reduce-scatter sums.
class HeadLayer final : public Layer {
 public:
  HeadLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape);

  LayerBytes bytes() const override;
  void meet(LayerRoom& room) const override;
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
  void norm_backward(const BackwardPass& pass, const Issue& to) const;
  std::int64_t chunks() const { return (tokens_ + loss_.chunk - 1) / loss_.chunk; }
  /// Work of a chunk of rows where ranks share the vocabulary.
  VocabularyWork chunk(const BackwardPass& pass, std::int64_t number) const;
  std::int64_t rows(std::int64_t chunk) const {
    return std::min(loss_.chunk, tokens_ - chunk * loss_.chunk);
  }
  // In the workspace: losses of all rows, then what ranks know of a chunk's, then its logits.
  std::int64_t statistics_begin() const {
    return tokens_ * static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t logits_begin() const {
    return statistics_begin() +
           tp_ * loss_.chunk * static_cast<std::int64_t>(sizeof(RowStatistics));
  }
  /// Then, under sequence parallelism, the normed input of all tokens.
  std::int64_t gathered_begin() const {
    return logits_begin() + loss_.chunk * part_.room * bytes_of(dtype_);
  }
  std::int64_t statistics() const { return stream_tokens_ * (rms_ ? 1 : 2); }
  NormShape norm_shape() const { return {stream_tokens_, 1, hidden_, hidden_, hidden_, epsilon_}; }

  std::int64_t stream_bytes() const { return stream_tokens_ * hidden_ * bytes_of(dtype_); }
  bool gathers() const { return stream_tokens_ < tokens_; }

  std::int64_t tokens_;
  std::int64_t stream_tokens_;
  std::int64_t hidden_;
  DType dtype_;
  DType gradient_;
  bool rms_;
  float epsilon_;
  ParameterIndex norm_;
  ParameterIndex matrix_;
  std::int64_t tp_;
  std::int64_t tp_rank_;
  VocabularyPart part_;
  CrossEntropyShape loss_;
};

}  // namespace shardwise::exec
