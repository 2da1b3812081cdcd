#include "executor/kernels/cuda/device_code/gelu_of.h"
#include "executor/kernels/cuda/products.h"
#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise::exec::cuda {
namespace {

constexpr int kSide = 32;  // of a block's tile of the result
constexpr int kDepth = 16;
constexpr int kLanes = 8;  // a thread has every kLanes-th row and column of the tile
constexpr int kEach = kSide / kLanes;
constexpr int kTileThreads = kLanes * kLanes;
constexpr int kTileStride = kSide + 1;

/// What becomes of a sum before it is stored. All but `adds` is of dense rows.
template <class E>
struct Finish {
  bool adds = false;
  const E* bias = nullptr;
  Gelu gelu = Gelu::tanh;
  E* activated = nullptr;
  const E* before = nullptr;
};

/// Rows [first, first + kSide) and depths [depth, depth + kDepth) of a matrix [rows, depths], or of
/// its transpose, to tile [kDepth, kTileStride]; zeros beyond the matrix.
template <class E>
__device__ void load_tile(MatrixView<const E> from, std::int64_t rows, std::int64_t depths,
                          std::int64_t first, std::int64_t depth, float* tile) {
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kDepth; i += kTileThreads) {
    // Neighbours read what lies together.
    const int row = from.transposed ? i % kSide : i / kDepth;
    const int deep = from.transposed ? i / kSide : i % kDepth;
    const std::int64_t r = first + row;
    const std::int64_t k = depth + deep;
    const bool is_one = r < rows && k < depths;
    const std::int64_t at = from.transposed ? k * from.stride + r : r * from.stride + k;
    tile[deep * kTileStride + row] = is_one ? widen(from.data[at]) : 0.0F;
  }
}

/// A tile of the result a block.
template <class E, class C>
__global__ void __launch_bounds__(kTileThreads)
    multiply_tiles(GemmShape s, MatrixView<const E> a, MatrixView<const E> b_columns,
                   MatrixView<C> c, Finish<C> finish) {
  SHARDWISE_SHARED(float, a_tile, kDepth* kTileStride);
  SHARDWISE_SHARED(float, b_tile, kDepth* kTileStride);
  const std::int64_t across = pieces(s.n, kSide);
  const std::int64_t first_row = blockIdx.x / across * kSide;
  const std::int64_t first_column = blockIdx.x % across * kSide;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int column = static_cast<int>(threadIdx.x) % kLanes;
  float sums[kEach][kEach] = {};
  for (std::int64_t depth = 0; depth < s.k; depth += kDepth) {
    if (depth > 0) __syncthreads();
    load_tile(a, s.m, s.k, first_row, depth, a_tile);
    load_tile(b_columns, s.n, s.k, first_column, depth, b_tile);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      float left[kEach];
      float right[kEach];
      SHARDWISE_UNROLL
      for (int i = 0; i < kEach; ++i) {
        left[i] = a_tile[k * kTileStride + row + i * kLanes];
        right[i] = b_tile[k * kTileStride + column + i * kLanes];
      }
      SHARDWISE_UNROLL
      for (int i = 0; i < kEach; ++i) {
        SHARDWISE_UNROLL
        for (int j = 0; j < kEach; ++j) sums[i][j] += left[i] * right[j];
      }
    }
  }
  SHARDWISE_UNROLL
  for (int i = 0; i < kEach; ++i) {
    SHARDWISE_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t m = first_row + row + i * kLanes;
      const std::int64_t n = first_column + column + j * kLanes;
      if (m >= s.m || n >= s.n) continue;
      const std::int64_t at = m * c.stride + n;
      float made = sums[i][j];
      if (finish.bias != nullptr) made += widen(finish.bias[n]);
      if (finish.adds) made += widen(c.data[at]);
      if (finish.before != nullptr) {
        made = gelu_of<true>(finish.gelu, widen(finish.before[at]), made);
      }
      const C stored = narrow<C>(made);
      c.data[at] = stored;
      if (finish.activated != nullptr) {
        finish.activated[at] = narrow<C>(gelu_of<false>(finish.gelu, widen(stored), 0.0F));
      }
    }
  }
}

template <class E, class C>
void multiply(const GemmShape& s, MatrixView<const E> a, MatrixView<const E> b, MatrixView<C> c,
              const Finish<C>& finish, cudaStream_t stream) {
  if (s.m == 0 || s.n == 0) return;
  b.transposed = !b.transposed;  // both tiles are read by rows of k
  const auto blocks = static_cast<unsigned>(pieces(s.m, kSide) * pieces(s.n, kSide));
  launch(stream, "gemm", dim3(blocks), dim3(kTileThreads), multiply_tiles<E, C>, s, a, b, c,
         finish);
}

constexpr int kSlices = 8;  // of a block's rows; a column a lane

/// The sum of a column for each lane of the block's first warp: every blocks x kSlices-th row a
/// slice, where a part of the rows is that of blockIdx.y.
template <class E>
__device__ float sum_of_rows(std::int64_t rows, std::int64_t width, std::int64_t stride,
                             const E* from, float* sums) {
  const int lane = static_cast<int>(threadIdx.x);
  const int slice = static_cast<int>(threadIdx.y);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane;
  const std::int64_t next = static_cast<std::int64_t>(gridDim.y) * kSlices;
  float sum = 0;
  if (column < width) {
    SHARDWISE_UNROLL_BY(8)  // so many loads are on their way
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kSlices + slice; row < rows;
         row += next) {
      sum += widen(from[row * stride + column]);
    }
  }
  sums[slice * kWarp + lane] = sum;
  __syncthreads();
  if (slice > 0) return 0;
  for (int other = 1; other < kSlices; ++other) sum += sums[other * kWarp + lane];
  return sum;
}

/// parts [gridDim.y, width]
template <class E>
__global__ void __launch_bounds__(kSlices* kWarp)
    sum_parts_of_rows(std::int64_t rows, std::int64_t width, std::int64_t stride, const E* d_y,
                      float* parts) {
  SHARDWISE_SHARED(float, sums, kSlices* kWarp);
  const float sum = sum_of_rows(rows, width, stride, d_y, sums);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  if (threadIdx.y == 0 && column < width) parts[blockIdx.y * width + column] = sum;
}

template <class E, class G>
__global__ void __launch_bounds__(kSlices* kWarp)
    add_rows(std::int64_t rows, std::int64_t width, std::int64_t stride, const E* from, G* d_bias) {
  SHARDWISE_SHARED(float, sums, kSlices* kWarp);
  const float sum = sum_of_rows(rows, width, stride, from, sums);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  if (threadIdx.y > 0 || column >= width) return;
  d_bias[column] = narrow<G>(widen(d_bias[column]) + sum);
}

}  // namespace

template <class E, class C>
void gemm(const GemmShape& s, MatrixView<const E> a, MatrixView<const E> b, MatrixView<C> c,
          bool adds, cudaStream_t stream) {
  multiply(s, a, b, c, Finish<C>{.adds = adds}, stream);
}

template <class E>
void linear_forward(const LinearShape& s, const E* x, const E* weight, const E* bias, E* y,
                    bool adds, std::optional<Gelu> gelu, E* activated, cudaStream_t stream) {
  Finish<E> finish = {.adds = adds, .bias = bias};
  if (gelu) {
    finish.gelu = *gelu;
    finish.activated = activated;
  }
  const MatrixView<const E> in_out = {weight, s.transposed ? s.out : s.in, !s.transposed};
  multiply<E, E>({s.rows, s.out, s.in}, {x, s.x_stride}, in_out, {y, s.y_stride}, finish, stream);
}

template <class E>
void linear_backward_input(const LinearShape& s, const E* d_y, const E* weight, E* d_x, bool adds,
                           std::optional<Gelu> gelu, const E* before, cudaStream_t stream) {
  Finish<E> finish = {.adds = adds};
  if (gelu) {
    finish.gelu = *gelu;
    finish.before = before;
  }
  const MatrixView<const E> out_in = {weight, s.transposed ? s.out : s.in, s.transposed};
  multiply<E, E>({s.rows, s.in, s.out}, {d_y, s.y_stride}, out_in, {d_x, s.x_stride}, finish,
                 stream);
}

template <class E, class G>
void linear_backward_weight(const LinearShape& s, const E* x, const E* d_y, G* d_weight, G* d_bias,
                            std::byte* workspace, cudaStream_t stream) {
  const Finish<G> added = {.adds = true};
  if (d_weight != nullptr && s.transposed) {
    multiply<E, G>({s.in, s.out, s.rows}, {x, s.x_stride, true}, {d_y, s.y_stride},
                   {d_weight, s.out}, added, stream);
  } else if (d_weight != nullptr) {
    multiply<E, G>({s.out, s.in, s.rows}, {d_y, s.y_stride, true}, {x, s.x_stride},
                   {d_weight, s.in}, added, stream);
  }
  if (d_bias != nullptr) bias_gradient(s.rows, s.out, s.y_stride, d_y, d_bias, workspace, stream);
}

template <class E, class G>
void bias_gradient(std::int64_t rows, std::int64_t width, std::int64_t stride, const E* d_y,
                   G* d_bias, std::byte* workspace, cudaStream_t stream) {
  if (rows == 0 || width == 0) return;
  const auto columns = static_cast<unsigned>(pieces(width, kWarp));
  const dim3 threads(kWarp, kSlices);
  const auto parts = static_cast<unsigned>(bias_gradient_parts(rows, width));
  if (parts == 1) {
    launch(stream, "bias gradient", dim3(columns), threads, add_rows<E, G>, rows, width, stride,
           d_y, d_bias);
    return;
  }
  auto* const sums = reinterpret_cast<float*>(workspace);
  launch(stream, "bias gradient parts", dim3(columns, parts), threads, sum_parts_of_rows<E>, rows,
         width, stride, d_y, sums);
  launch(stream, "bias gradient", dim3(columns), threads, add_rows<float, G>,
         static_cast<std::int64_t>(parts), width, width, sums, d_bias);
}

template void gemm(const GemmShape&, MatrixView<const float>, MatrixView<const float>,
                   MatrixView<float>, bool, cudaStream_t);
template void gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>,
                   MatrixView<float>, bool, cudaStream_t);
template void gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>,
                   MatrixView<Bf16>, bool, cudaStream_t);
template void linear_forward(const LinearShape&, const float*, const float*, const float*, float*,
                             bool, std::optional<Gelu>, float*, cudaStream_t);
template void linear_forward(const LinearShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*, bool,
                             std::optional<Gelu>, Bf16*, cudaStream_t);
template void linear_backward_input(const LinearShape&, const float*, const float*, float*, bool,
                                    std::optional<Gelu>, const float*, cudaStream_t);
template void linear_backward_input(const LinearShape&, const Bf16*, const Bf16*, Bf16*, bool,
                                    std::optional<Gelu>, const Bf16*, cudaStream_t);
template void linear_backward_weight(const LinearShape&, const float*, const float*, float*, float*,
                                     std::byte*, cudaStream_t);
template void linear_backward_weight(const LinearShape&, const Bf16*, const Bf16*, float*, float*,
                                     std::byte*, cudaStream_t);
template void linear_backward_weight(const LinearShape&, const Bf16*, const Bf16*, Bf16*, Bf16*,
                                     std::byte*, cudaStream_t);
template void bias_gradient(std::int64_t, std::int64_t, std::int64_t, const float*, float*,
                            std::byte*, cudaStream_t);
template void bias_gradient(std::int64_t, std::int64_t, std::int64_t, const Bf16*, float*,
                            std::byte*, cudaStream_t);
template void bias_gradient(std::int64_t, std::int64_t, std::int64_t, const Bf16*, Bf16*,
                            std::byte*, cudaStream_t);

}  // namespace shardwise::exec::cuda
