#pragma once

#include <algorithm>

#include "executor/kernels/cuda/norm_kernels.h"
#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise::exec::cuda {

/// Calls f with the share of a row that fits: how many threads have it, and whether in registers.
template <class E, class F>
void with_norm_share(bool vectors, std::int64_t width, F f) {
  using Head = RowShare<E, kWarp / 2, 1>;  // 128 wide in bf16: norms of queries and keys
  using Narrow = RowShare<E, kWarp, 3>;    // 768
  using Warp = RowShare<E, kWarp, 4>;
  using Middle = RowShare<E, kNormThreads, 1>;
  using Wide = RowShare<E, kNormThreads, 4>;
  using Any = RowShare<E, kNormThreads, 0>;
  if (!vectors || width > Wide::kMostWidth) return f(Any());
  if (width <= Head::kMostWidth) return f(Head());
  if (width <= Narrow::kMostWidth) return f(Narrow());
  if (width <= Warp::kMostWidth) return f(Warp());
  if (width <= Middle::kMostWidth) return f(Middle());
  return f(Wide());
}

inline NormSegments segments_of(const NormShape& s) { return {s, s.rows * s.segments}; }

/// Number of parts the sums over rows are made in: of the shape alone, so their bits are too.
inline int norm_parts(const NormShape& s) {
  static_assert(norm_backward_parts(1, 1) % kNormSlices == 0);
  return static_cast<int>(norm_backward_parts(s.rows * s.segments, s.width));
}

template <bool kRms, class E>
void norm_forward(const NormShape& s, const E* x, E* kept, const E* weight, const E* bias, E* y,
                  float* statistics, cudaStream_t stream) {
  const NormSegments all = segments_of(s);
  if (all.count == 0) return;
  const bool vectors = takes_vectors(x, s.width, s.x_stride, s.y_stride) && takes_vectors(y) &&
                       takes_vectors(weight) && takes_vectors(kept);
  with_norm_share<E>(vectors, s.width, [&]<class Share>(Share) {
    launch(
        stream, "norm", dim3(static_cast<unsigned>(pieces(all.count, NormTeams<Share>::kInBlock))),
        dim3(kNormThreads), norm_rows<kRms, Share, E>, all, x, kept, weight, bias, y, statistics);
  });
}

template <bool kRms, class E, class G>
void norm_backward(const NormShape& s, const E* x, const E* weight, const float* statistics,
                   const E* d_y, E* d_x, bool adds, G* d_weight, G* d_bias, std::byte* workspace,
                   cudaStream_t stream) {
  const NormSegments all = segments_of(s);
  if (all.count == 0) return;
  const int width = static_cast<int>(s.width);
  const int count = norm_parts(s);
  const bool trained = d_weight != nullptr || d_bias != nullptr;
  auto* const parts = trained ? reinterpret_cast<float*>(workspace) : nullptr;
  const auto columns = static_cast<unsigned>(pieces(s.width, kWarp));
  const dim3 slices(kWarp, kNormSlices);
  const bool vectors = takes_vectors(x, s.width, s.x_stride, s.y_stride) && takes_vectors(d_y) &&
                       takes_vectors(weight) && takes_vectors(d_x);
  with_norm_share<E>(vectors, s.width, [&]<class Share>(Share) {
    if (!Share::kHolds && trained) {  // first: d_x may take d_y's place
      launch(stream, "norm weight parts", dim3(columns, static_cast<unsigned>(count / kNormSlices)),
             slices, norm_weight_parts<kRms, E>, all, x, statistics, d_y, parts, count);
    }
    launch(stream, "norm backward", dim3(static_cast<unsigned>(count)), dim3(kNormThreads),
           norm_backward_rows<kRms, Share, E>, all, x, weight, statistics, d_y, d_x, adds, parts);
  });
  if (!trained) return;
  launch(stream, "norm parts", dim3(columns, kRms ? 1 : 2), dim3(kWarp, kPartSlices),
         add_norm_parts<G>, parts, count, width, d_weight, d_bias);
}

}  // namespace shardwise::exec::cuda
