#include "executor/transformer/head_layer.h"

#include <algorithm>

#include "executor/transformer/norm_of.h"
#include "executor/transformer/weights.h"

namespace shardwise::exec {

template <class E, class G>
HeadLayer<E, G>::HeadLayer(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape)
    : tokens_(shape.tokens()),
      hidden_(model.hidden_size),
      rms_(find_operation(layer, "final_norm")->rms),
      epsilon_(static_cast<float>(model.numerics.norm_epsilon)),
      norm_(parameters_of(layer, "final_norm")),
      matrix_(parameters_of(layer, "lm_head")),
      loss_{tokens_, hidden_, model.vocab_size,
            shape.loss_chunk > 0 ? std::min(shape.loss_chunk, tokens_) : tokens_} {}

template <class E, class G>
LayerBytes HeadLayer<E, G>::bytes() const {
  LayerBytes bytes;
  bytes.saved = statistics() * static_cast<std::int64_t>(sizeof(float)) +
                2 * tokens_ * hidden_ * static_cast<std::int64_t>(sizeof(E));
  bytes.backward_workspace = cross_entropy_bytes<E>(loss_);
  return bytes;
}

template <class E, class G>
typename HeadLayer<E, G>::Places HeadLayer<E, G>::places(std::byte* saved) const {
  auto* statistics = reinterpret_cast<float*>(saved);
  E* x = reinterpret_cast<E*>(statistics + this->statistics());
  return {statistics, x, x + tokens_ * hidden_};
}

template <class E, class G>
void HeadLayer<E, G>::forward(const ForwardPass& pass, Workers& workers) const {
  const Places at = places(pass.saved);
  std::copy_n(reinterpret_cast<const E*>(pass.stream), tokens_ * hidden_, at.x);
  norm_forward<E>(rms_, norm_shape(), norm_, Weights<E>(pass.weights), at.x, at.normed,
                  at.statistics, workers);
}

template <class E, class G>
void HeadLayer<E, G>::backward(const BackwardPass& pass, Workers& workers) const {
  const Weights<E> weights(pass.weights);
  const Gradients<G> gradients(pass.gradients);
  const Places at = places(pass.saved);
  cross_entropy<E, G>(loss_, at.normed, weights.weight(matrix_), pass.targets, pass.loss_scale,
                      gradients.weight(matrix_), *pass.loss, pass.workspace, workers);
  norm_backward<E, G>(rms_, norm_shape(), norm_, weights, gradients, at.x, at.statistics, at.normed,
                      reinterpret_cast<E*>(pass.stream), false, workers);
}

template class HeadLayer<float, float>;
template class HeadLayer<Bf16, float>;
template class HeadLayer<Bf16, Bf16>;

}  // namespace shardwise::exec
