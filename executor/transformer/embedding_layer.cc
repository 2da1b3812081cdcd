#include "executor/transformer/embedding_layer.h"

#include <algorithm>

#include "executor/kernels/embedding.h"
#include "executor/transformer/weights.h"

namespace shardwise::exec {

template <class E, class G>
EmbeddingLayer<E, G>::EmbeddingLayer(const ModelSpec& model, const LayerSpec& layer,
                                     const LayerShape& shape)
    : shape_(shape),
      hidden_(model.hidden_size),
      tokens_(parameters_of(layer, "token_embedding")),
      positions_(parameters_of(layer, "position_embedding")) {}

template <class E, class G>
LayerBytes EmbeddingLayer<E, G>::bytes() const {
  LayerBytes bytes;
  bytes.saved = shape_.tokens() * static_cast<std::int64_t>(sizeof(std::int64_t));
  return bytes;
}

template <class E, class G>
void EmbeddingLayer<E, G>::forward(const ForwardPass& pass, Workers& workers) const {
  std::copy_n(pass.inputs, shape_.tokens(), reinterpret_cast<std::int64_t*>(pass.saved));
  const Weights<E> weights(pass.weights);
  embedding_forward<E>({shape_.batch, shape_.sequence, hidden_}, pass.inputs,
                       weights.weight(tokens_), weights.weight(positions_),
                       reinterpret_cast<E*>(pass.stream), workers);
}

template <class E, class G>
void EmbeddingLayer<E, G>::backward(const BackwardPass& pass, Workers& workers) const {
  const Gradients<G> gradients(pass.gradients);
  embedding_backward<E, G>({shape_.batch, shape_.sequence, hidden_},
                           reinterpret_cast<const std::int64_t*>(pass.saved),
                           reinterpret_cast<const E*>(pass.stream), gradients.weight(tokens_),
                           gradients.weight(positions_), workers);
}

template class EmbeddingLayer<float, float>;
template class EmbeddingLayer<Bf16, float>;
template class EmbeddingLayer<Bf16, Bf16>;

}  // namespace shardwise::exec
