#include "executor/kernels/cuda/norm_launch.h"

namespace shardwise::exec::cuda {

template <class E>
void layer_norm_forward(const NormShape& s, const E* x, E* kept, const E* weight, const E* bias,
                        E* y, float* statistics, cudaStream_t stream) {
  norm_forward<false, E>(s, x, kept, weight, bias, y, statistics, stream);
}

template <class E, class G>
void layer_norm_backward(const NormShape& s, const E* x, const E* weight, const float* statistics,
                         const E* d_y, E* d_x, bool adds, G* d_weight, G* d_bias,
                         std::byte* workspace, cudaStream_t stream) {
  norm_backward<false, E, G>(s, x, weight, statistics, d_y, d_x, adds, d_weight, d_bias, workspace,
                             stream);
}

template void layer_norm_forward(const NormShape&, const float*, float*, const float*, const float*,
                                 float*, float*, cudaStream_t);
template void layer_norm_forward(const NormShape&, const Bf16*, Bf16*, const Bf16*, const Bf16*,
                                 Bf16*, float*, cudaStream_t);
template void layer_norm_backward(const NormShape&, const float*, const float*, const float*,
                                  const float*, float*, bool, float*, float*, std::byte*,
                                  cudaStream_t);
template void layer_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                  const Bf16*, Bf16*, bool, float*, float*, std::byte*,
                                  cudaStream_t);
template void layer_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                  const Bf16*, Bf16*, bool, Bf16*, Bf16*, std::byte*, cudaStream_t);

}  // namespace shardwise::exec::cuda
