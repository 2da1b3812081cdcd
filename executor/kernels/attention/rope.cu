#include <algorithm>

#include "executor/kernels/attention/attention.h"
#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/divisor.h"
#include "executor/kernels/cuda/operations.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec::cuda {
namespace {

struct Frequencies {
  double at[kMaxHeadDim / 2];
};

/// x^first / first! - x^(first + 2) / (first + 2)! + …: terms of the series of sine (first 1) or of
/// cosine (first 0) for |x| <= pi / 4, where what is left out is below 1e-19.
template <int kFirst>
__device__ double sine_series(double x) {
  constexpr int kLast = kFirst + 18;
  const double square = -x * x;
  double sum = 1;
  SHARDWISE_UNROLL
  for (int n = kLast; n > kFirst; n -= 2) sum = 1 + sum * (square * (1.0 / (n * (n - 1))));
  return kFirst == 1 ? sum * x : sum;
}

/// An angle of a table a thread. The functions of CUDA's library are not used: for large angles
/// they have local memory.
__global__ void __launch_bounds__(kChunkThreads)
    fill_rope_tables(std::int64_t sequence, int half, const __grid_constant__ Frequencies frequency,
                     float* cosines, float* sines) {
  // pi / 2 = high + low + 1.5e-33. As turns are counted in doubles, angle - turns * high is exact.
  constexpr double kHigh = 0x1.921fb54442d18p+0;
  constexpr double kLow = 0x1.1a62633145c07p-54;
  constexpr double kTurnsARadian = 0x1.45f306dc9c883p-1;  // 2 / pi
  const std::int64_t n = chunk_of_thread();
  if (n >= sequence * half) return;
  const double angle = static_cast<double>(n / half) * frequency.at[n % half];
  const double turns = rint(angle * kTurnsARadian);
  const double rest = fma(-turns, kLow, fma(-turns, kHigh, angle));
  const double sine = sine_series<1>(rest);
  const double cosine = sine_series<0>(rest);
  const auto quarter = static_cast<std::int64_t>(turns) & 3;
  const double turned_cosine = quarter % 2 == 0 ? cosine : sine;
  const double turned_sine = quarter % 2 == 0 ? sine : cosine;
  cosines[n] = static_cast<float>(quarter == 1 || quarter == 2 ? -turned_cosine : turned_cosine);
  sines[n] = static_cast<float>(quarter >= 2 ? -turned_sine : turned_sine);
}

/// What chunks of heads are numbered by, each below that of the one before it.
struct RopeDivisors {
  Divisor chunks;  // of half a head
  Divisor heads;
  Divisor sequence;
};

/// A thread has a chunk of the first half of a head, and the same of the second.
template <int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    rotate_heads(RopeShape s, RopeDivisors by, RopeTables tables, float sign, E* x) {
  const std::int64_t half = s.head_dim / 2;
  const auto [head_of_all, chunk] = by.chunks.parts(chunk_of_thread());
  const auto [row, head] = by.heads.parts(head_of_all);
  if (row >= s.batch * s.sequence) return;
  const std::int64_t in_head = chunk * kStep;
  const std::int64_t angle = by.sequence.parts(row).remainder * half + in_head;
  E* const place = x + row * s.stride + head * s.head_dim + in_head;
  auto low = load_chunk<kStep>(place);
  auto high = load_chunk<kStep>(place + half);
  for (int i = 0; i < kStep; ++i) {
    const float a = widen(low.at[i]);
    const float b = widen(high.at[i]);
    const float cosine = tables.cosines[angle + i];
    const float sine = sign * tables.sines[angle + i];
    low.at[i] = narrow<E>(a * cosine - b * sine);
    high.at[i] = narrow<E>(b * cosine + a * sine);
  }
  store_chunk(place, low);
  store_chunk(place + half, high);
}

template <class E>
void rotate(const RopeShape& s, const RopeTables& tables, float sign, E* x, cudaStream_t stream) {
  constexpr int kVector = Vector<E>::kCount;
  const std::int64_t count = s.batch * s.sequence * s.heads * (s.head_dim / 2);
  if (count == 0) return;
  const bool vectors = takes_vectors(x, s.head_dim / 2, s.stride);
  const int step = vectors ? kVector : 1;
  const dim3 blocks = chunk_blocks(count / step);
  const std::int64_t limit = chunks_of(blocks);
  const RopeDivisors by = {{s.head_dim / 2 / step, limit}, {s.heads, limit}, {s.sequence, limit}};
  launch(stream, "rope", blocks, dim3(kChunkThreads),
         vectors ? rotate_heads<kVector, E> : rotate_heads<1, E>, s, by, tables, sign, x);
}

}  // namespace

void rope_tables(std::int64_t sequence, std::span<const double> frequencies, float* cosines,
                 float* sines, cudaStream_t stream) {
  Frequencies all = {};
  SHARDWISE_CHECK(frequencies.size() <= std::size(all.at), "head_dim is at most kMaxHeadDim");
  std::ranges::copy(frequencies, all.at);
  const std::int64_t count = sequence * std::ssize(frequencies);
  if (count == 0) return;
  launch(stream, "rope tables", chunk_blocks(count), dim3(kChunkThreads), fill_rope_tables,
         sequence, static_cast<int>(frequencies.size()), all, cosines, sines);
}

template <class E>
void rope_forward(const RopeShape& s, const RopeTables& tables, E* x, cudaStream_t stream) {
  rotate(s, tables, 1.0F, x, stream);
}
template <class E>
void rope_backward(const RopeShape& s, const RopeTables& tables, E* d_x, cudaStream_t stream) {
  rotate(s, tables, -1.0F, d_x, stream);
}

template void rope_forward(const RopeShape&, const RopeTables&, float*, cudaStream_t);
template void rope_forward(const RopeShape&, const RopeTables&, Bf16*, cudaStream_t);
template void rope_backward(const RopeShape&, const RopeTables&, float*, cudaStream_t);
template void rope_backward(const RopeShape&, const RopeTables&, Bf16*, cudaStream_t);

}  // namespace shardwise::exec::cuda
