#include "executor/kernels/cuda/norm_launch.h"

namespace shardwise::exec::cuda {

std::int64_t norm_backward_bytes(const NormShape& s) {
  return norm_backward_workspace(s.rows * s.segments, s.width);
}

template <class E>
void rms_norm_forward(const NormShape& s, const E* x, E* kept, const E* weight, E* y,
                      float* statistics, cudaStream_t stream) {
  norm_forward<true, E>(s, x, kept, weight, nullptr, y, statistics, stream);
}

template <class E, class G>
void rms_norm_backward(const NormShape& s, const E* x, const E* weight, const float* statistics,
                       const E* d_y, E* d_x, bool adds, G* d_weight, std::byte* workspace,
                       cudaStream_t stream) {
  norm_backward<true, E, G>(s, x, weight, statistics, d_y, d_x, adds, d_weight, nullptr, workspace,
                            stream);
}

template void rms_norm_forward(const NormShape&, const float*, float*, const float*, float*, float*,
                               cudaStream_t);
template void rms_norm_forward(const NormShape&, const Bf16*, Bf16*, const Bf16*, Bf16*, float*,
                               cudaStream_t);
template void rms_norm_backward(const NormShape&, const float*, const float*, const float*,
                                const float*, float*, bool, float*, std::byte*, cudaStream_t);
template void rms_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                const Bf16*, Bf16*, bool, float*, std::byte*, cudaStream_t);
template void rms_norm_backward(const NormShape&, const Bf16*, const Bf16*, const float*,
                                const Bf16*, Bf16*, bool, Bf16*, std::byte*, cudaStream_t);

}  // namespace shardwise::exec::cuda
