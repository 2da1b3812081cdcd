#include "executor/kernels/cuda/own_kernels.h"

#include "executor/kernels/cuda/attention_cuda.h"
#include "executor/kernels/cuda/operations.h"
#include "executor/kernels/cuda/products.h"
#include "executor/kernels/with_dtype.h"

namespace shardwise::exec {

void OwnLinear::forward(const LinearWork& w, std::byte* /*workspace*/, cudaStream_t stream) {
  SHARDWISE_CHECK(!w.gelu || w.shape.y_stride == w.shape.out, "rows are dense");
  SHARDWISE_CHECK(!w.gelu || w.activated != w.x, "blocks read x when others have ended");
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::linear_forward(w.shape, as<E>(w.x), as<E>(w.weight), as<E>(w.bias), as<E>(w.y), w.adds,
                         w.gelu, as<E>(w.activated), stream);
  });
}

void OwnLinear::backward_input(const LinearBackwardInputWork& w, std::byte* /*workspace*/,
                               cudaStream_t stream) {
  SHARDWISE_CHECK(!w.gelu || w.shape.x_stride == w.shape.in, "rows are dense");
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::linear_backward_input(w.shape, as<E>(w.d_y), as<E>(w.weight), as<E>(w.d_x), w.adds,
                                w.gelu, as<E>(w.before), stream);
  });
}

void OwnLinear::backward_weight(const LinearBackwardWeightWork& w, std::byte* workspace,
                                cudaStream_t stream) {
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    cuda::linear_backward_weight(w.shape, as<E>(w.x), as<E>(w.d_y), as<G>(w.d_weight),
                                 as<G>(w.d_bias), workspace, stream);
  });
}

void OwnPasses::gelu(const GeluWork& w, cudaStream_t stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::gelu_forward(w.kind, w.count, as<E>(w.x), as<E>(w.y), stream);
  });
}

void OwnPasses::gelu_backward(const GeluBackwardPass& p, cudaStream_t stream) {
  with_dtype(p.dtype, [&]<class E>(E) {
    cuda::gelu_backward<E>(p.kind, p.count, as<E>(p.before), as<E>(p.d_x), as<E>(p.d_x), stream);
  });
}

void OwnPasses::bias_gradient(const BiasGradientPass& p, cudaStream_t stream) {
  with_dtypes(p.dtype, p.gradient, [&]<class E, class G>(E, G) {
    cuda::bias_gradient(p.rows, p.width, p.stride, as<E>(p.d_y), as<G>(p.d_bias), p.workspace,
                        stream);
  });
}

void OwnAttention::forward(const AttentionWork& w, std::span<std::byte> /*workspace*/,
                           cudaStream_t stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::attention_forward(w.shape, as<E>(w.qkv), as<E>(w.out), w.log_sums, stream);
  });
}

void OwnAttention::backward(const AttentionBackwardWork& w, std::span<std::byte> /*workspace*/,
                            cudaStream_t stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::attention_backward(w.shape, as<E>(w.qkv), as<E>(w.out), w.log_sums, as<E>(w.d_out),
                             as<float>(w.workspace), stream);
  });
}

}  // namespace shardwise::exec
