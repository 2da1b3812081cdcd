#include <algorithm>

#include "executor/kernels/cuda/device_code/reduce.h"
#include "executor/kernels/cuda/device_code/typed.h"
#include "executor/kernels/cuda/movement.h"

namespace shardwise::exec::cuda {
namespace {

struct SquaresTensor {
  const std::byte* data;
  std::int64_t count;
  bool is_bf16;
  bool takes_vectors;
};
constexpr int kTensorsALaunch = 64;  // what a kernel's parameters hold: 1.5 KiB
struct SquaresTensors {
  SquaresTensor at[kTensorsALaunch];
  int count;
};

/// The thread's share of a tensor's squares: every kSquareParts x kChunkThreads-th chunk. A square
/// of fp32 is exact in fp64.
template <int kStep, class E>
__device__ double squares_of(const std::byte* data, std::int64_t count) {
  const E* const from = reinterpret_cast<const E*>(data);
  constexpr std::int64_t kNext = std::int64_t{kSquareParts} * kChunkThreads * kStep;
  double sum = 0;
  for (std::int64_t first = chunk_of_thread() * kStep; first < count; first += kNext) {
    if (first + kStep <= count) {
      const auto in = load_chunk<kStep>(from + first);
      SHARDWISE_UNROLL
      for (int i = 0; i < kStep; ++i) {
        const double each = widen(in.at[i]);
        sum += each * each;
      }
    } else {
      for (std::int64_t i = first; i < count; ++i) {
        const double each = widen(from[i]);
        sum += each * each;
      }
    }
  }
  return sum;
}

/// The sum over the block, in its first thread.
__device__ double sum_in_first(double x, double* places) {
  x = reduce_warp(x, Plus());
  if (threadIdx.x % kWarp == 0) places[threadIdx.x / kWarp] = x;
  __syncthreads();
  if (threadIdx.x != 0) return 0;
  for (int w = 1; w < kChunkThreads / kWarp; ++w) x += places[w];
  return x;
}

/// A part a block; later launches add to those of earlier ones.
__global__ void __launch_bounds__(kChunkThreads)
    square_parts(const __grid_constant__ SquaresTensors tensors, bool adds, double* parts) {
  SHARDWISE_SHARED(double, places, kChunkThreads / kWarp);
  double sum = 0;
  for (int t = 0; t < tensors.count; ++t) {
    const SquaresTensor& each = tensors.at[t];
    if (each.is_bf16) {
      sum += each.takes_vectors ? squares_of<8, Bf16>(each.data, each.count)
                                : squares_of<1, Bf16>(each.data, each.count);
    } else {
      sum += each.takes_vectors ? squares_of<4, float>(each.data, each.count)
                                : squares_of<1, float>(each.data, each.count);
    }
  }
  sum = sum_in_first(sum, places);
  if (threadIdx.x == 0) parts[blockIdx.x] = adds ? parts[blockIdx.x] + sum : sum;
}

__global__ void __launch_bounds__(kChunkThreads)
    norm_of_parts(const double* parts, std::int64_t count, double* norm, double clip_norm,
                  float* clip_factor) {
  SHARDWISE_SHARED(double, places, kChunkThreads / kWarp);
  double sum = 0;
  for (std::int64_t p = static_cast<int>(threadIdx.x); p < count; p += kChunkThreads) {
    sum += parts[p];
  }
  sum = sum_in_first(sum, places);
  if (threadIdx.x != 0) return;
  const double root = sqrt(sum);
  *norm = root;
  if (clip_factor == nullptr) return;
  const bool whole = clip_norm <= 0 || root <= clip_norm;
  *clip_factor = whole ? 1.0F : static_cast<float>(clip_norm / root);
}

__global__ void __launch_bounds__(kChunkThreads)
    check_norm_of_parts(const double* parts, GradientCheckRules rules, GradientBucket bucket,
                        GradientCheckState* state) {
  SHARDWISE_SHARED(double, places, kChunkThreads / kWarp);
  double sum = 0;
  for (int p = static_cast<int>(threadIdx.x); p < kSquareParts; p += kChunkThreads) sum += parts[p];
  sum = sum_in_first(sum, places);
  if (threadIdx.x == 0) exec::check_gradients(rules, sqrt(sum), bucket, *state);
}

}  // namespace

void squares(const SquaresWork& w, cudaStream_t stream) {
  auto* const parts = reinterpret_cast<double*>(w.sums);
  bool adds = false;
  auto next = w.tensors.begin();
  do {  // once without tensors too: parts are zeros then
    SquaresTensors some = {};
    for (; next != w.tensors.end() && some.count < kTensorsALaunch; ++next) {
      const bool is_bf16 = next->dtype == DType::bf16;
      some.at[some.count++] = {next->data, static_cast<std::int64_t>(next->count), is_bf16,
                               takes_vectors(next->data)};
    }
    launch(stream, "squares", dim3(kSquareParts), dim3(kChunkThreads), square_parts, some, adds,
           parts);
    adds = true;
  } while (next != w.tensors.end());
}

void squares_norm(const SquaresNormWork& w, cudaStream_t stream) {
  launch(stream, "squares norm", dim3(1), dim3(kChunkThreads), norm_of_parts,
         reinterpret_cast<const double*>(w.sums), w.ranks * kSquareParts, w.norm, w.clip_norm,
         w.clip_factor);
}

void check_gradients(const GradientCheckWork& w, cudaStream_t stream) {
  launch(stream, "check gradients", dim3(1), dim3(kChunkThreads), check_norm_of_parts,
         reinterpret_cast<const double*>(w.sums), w.rules, w.bucket, w.state);
}

}  // namespace shardwise::exec::cuda
