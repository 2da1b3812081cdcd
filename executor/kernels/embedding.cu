#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/divisor.h"
#include "executor/kernels/cuda/embedding.h"
#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise::exec::cuda {
namespace {

/// What chunks of rows are numbered by.
struct RowDivisors {
  Divisor chunks;  // of a row
  Divisor sequence;
};

/// A chunk of a row of y.
template <int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    embed_rows(EmbeddingShape s, RowDivisors by, const std::int64_t* tokens, std::int64_t* kept,
               const E* table, const E* positions, E* y) {
  const auto [row, chunk] = by.chunks.parts(chunk_of_thread());
  const std::int64_t column = chunk * kStep;
  if (row >= s.batch * s.sequence) return;
  const std::int64_t token = tokens[row];
  if (kept != nullptr && column == 0) kept[row] = token;
  auto made = load_chunk<kStep>(table + token * s.width + column);
  if (positions != nullptr) {
    const std::int64_t at = by.sequence.parts(row).remainder;
    const auto position = load_chunk<kStep>(positions + at * s.width + column);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) {
      made.at[i] = narrow<E>(widen(made.at[i]) + widen(position.at[i]));
    }
  }
  store_chunk(y + row * s.width + column, made);
}

/// The rows of tokens, those of a token together and in their order: each row counts the rows that
/// come before it.   sorted [rows], keys [rows] their tokens
__global__ void __launch_bounds__(kChunkThreads)
    sort_rows(int rows, const std::int64_t* tokens, int* sorted, int* keys) {
  SHARDWISE_SHARED(int, tiles, 2 * kChunkThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.x) * kChunkThreads + thread;
  const int own = row < rows ? static_cast<int>(tokens[row]) : 0;
  int before = 0;
  for (int first = 0; first < rows; first += kChunkThreads) {
    // By turns: all have read a tile when the next one but one takes its place.
    int* const tile = &tiles[first / kChunkThreads % 2 * kChunkThreads];
    if (first + thread < rows) tile[thread] = static_cast<int>(tokens[first + thread]);
    __syncthreads();
    const int count = rows - first < kChunkThreads ? rows - first : kChunkThreads;
    for (int i = 0; i < count; ++i) {
      before += tile[i] < own || (tile[i] == own && first + i < row) ? 1 : 0;
    }
  }
  if (row >= rows) return;
  sorted[before] = row;
  keys[before] = own;
}

/// A sum as it is before rows are added: what is in `to`, or zeros where that is joined last, as it
/// is in 16 bits.
template <int kStep, class G>
__device__ Chunk<float, kStep> begin_sum(const G* to) {
  Chunk<float, kStep> sum = {};
  if constexpr (sizeof(G) == 4) sum = load_chunk<kStep>(to);
  return sum;
}
template <int kStep, class G>
__device__ void end_sum(const Chunk<float, kStep>& sum, G* to) {
  if constexpr (sizeof(G) == 4) return store_chunk(to, sum);
  auto made = load_chunk<kStep>(to);
  SHARDWISE_UNROLL
  for (int i = 0; i < kStep; ++i) made.at[i] = narrow<G>(widen(made.at[i]) + sum.at[i]);
  store_chunk(to, made);
}

/// sum += a chunk of the columns of the rows row_of(0) … row_of(count - 1) of `rows`, in this
/// order.
template <class R, int kStep, class Rows>
__device__ void add_rows(const R* rows, std::int64_t width, int count, Rows row_of,
                         Chunk<float, kStep>& sum) {
  SHARDWISE_UNROLL_BY(4)  // so many loads are on their way
  for (int r = 0; r < count; ++r) {
    const auto in = load_chunk<kStep>(rows + row_of(r) * width);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) sum.at[i] += widen(in.at[i]);
  }
}

/// The rows of a token among all sorted ones, its run, as seen from a place in it. One that is
/// longer than a segment is cut into such, from its first row on.
struct Run {
  static constexpr int kSegment = static_cast<int>(kEmbeddingSegment);
  const int* keys;
  int rows;

  __device__ bool begins(int at) const { return at == 0 || keys[at - 1] != keys[at]; }
  /// Of a run that begins here. \pre begins(at)
  __device__ bool is_long(int at) const {
    return at + kSegment < rows && keys[at + kSegment] == keys[at];
  }
  /// The first place in (at, beyond) that is no more of the run, or beyond.
  __device__ int end(int at, int beyond) const {
    int last = at + 1;
    while (last < beyond) {
      const int middle = (last + beyond) / 2;
      if (keys[middle] == keys[at]) {
        last = middle + 1;
      } else {
        beyond = middle;
      }
    }
    return last;
  }
  /// The first place in [low, at] of the run of `at`.
  __device__ int first(int low, int at) const {
    for (int high = at; low < high;) {
      const int middle = (low + high) / 2;
      if (keys[middle] == keys[at]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  /// Where a segment's sums are: long runs begin, and segments behind a run's first, at most once
  /// in any kSegment places.
  static __device__ std::int64_t place(int at, bool begins) {
    return 2 * (at / kSegment) + (begins ? 0 : 1);
  }
};

/// A block for each sorted row; the first of a segment's adds the segment, to d_table where it is
/// the whole run.   segments [embedding_segments(), width]
template <int kStep, class E, class G>
__global__ void __launch_bounds__(kChunkThreads)
    add_token_rows(Run run, std::int64_t width, const int* sorted, const E* d_y, G* d_table,
                   float* segments) {
  constexpr int kSegment = Run::kSegment;
  const int first = static_cast<int>(blockIdx.x);
  const int token = run.keys[first];
  const bool begins = run.begins(first);
  if (!begins) {
    if (first < kSegment || run.keys[first - kSegment] != token) return;
    if ((first - run.first(0, first)) % kSegment != 0) return;
  }
  const bool whole = begins && !run.is_long(first);
  const int beyond = first + kSegment < run.rows ? first + kSegment : run.rows;
  const int count = run.end(first, beyond) - first;
  const auto row_of = [&](int r) { return static_cast<std::int64_t>(sorted[first + r]); };
  for (std::int64_t column = static_cast<int>(threadIdx.x) * kStep; column < width;
       column += kChunkThreads * kStep) {
    G* const to = d_table + token * width + column;
    Chunk<float, kStep> sum = {};
    if (whole) sum = begin_sum<kStep>(to);
    add_rows(d_y + column, width, count, row_of, sum);
    if (whole) {
      end_sum(sum, to);
    } else {
      store_chunk(segments + Run::place(first, begins) * width + column, sum);
    }
  }
}

/// A block for kSegment sorted rows: adds the segments of the long run that begins among them.
template <int kStep, class G>
__global__ void __launch_bounds__(kChunkThreads)
    add_segments(Run run, std::int64_t width, const float* segments, G* d_table) {
  constexpr int kSegment = Run::kSegment;
  const int own = static_cast<int>(blockIdx.x) * kSegment;
  const int behind = own + kSegment;  // a long run that begins before goes on there
  if (behind >= run.rows) return;
  const int first = run.first(own, behind);
  if (first == behind || !run.begins(first) || !run.is_long(first)) return;
  const int count = static_cast<int>(pieces(run.end(first, run.rows) - first, kSegment));
  const auto place_of = [&](int s) { return Run::place(first + s * kSegment, s == 0); };
  for (std::int64_t column = static_cast<int>(threadIdx.x) * kStep; column < width;
       column += kChunkThreads * kStep) {
    G* const to = d_table + run.keys[first] * width + column;
    Chunk<float, kStep> sum = begin_sum<kStep>(to);
    add_rows(segments + column, width, count, place_of, sum);
    end_sum(sum, to);
  }
}

/// A chunk of a position, over the batch.
template <int kStep, class E, class G>
__global__ void __launch_bounds__(kChunkThreads)
    add_position_rows(EmbeddingShape s, Divisor chunks, const E* d_y, G* d_positions) {
  const auto [position, chunk] = chunks.parts(chunk_of_thread());
  if (position >= s.sequence) return;
  const std::int64_t column = chunk * kStep;
  G* const to = d_positions + position * s.width + column;
  Chunk<float, kStep> sum = begin_sum<kStep>(to);
  const std::int64_t at = position;  // clang's lambdas capture no part of a binding
  add_rows(
      d_y + column, s.width, static_cast<int>(s.batch), [&](int b) { return b * s.sequence + at; },
      sum);
  end_sum(sum, to);
}

}  // namespace

template <class E>
void embedding_forward(const EmbeddingShape& s, const std::int64_t* tokens, std::int64_t* kept,
                       const E* table, const E* positions, E* y, cudaStream_t stream) {
  constexpr int kVector = Vector<E>::kCount;
  const std::int64_t count = s.batch * s.sequence * s.width;
  if (count == 0) return;
  const bool vectors =
      takes_vectors(table, s.width) && takes_vectors(positions) && takes_vectors(y);
  const int step = vectors ? kVector : 1;
  const dim3 blocks = chunk_blocks(count / step);
  const std::int64_t limit = chunks_of(blocks);
  launch(stream, "embedding", blocks, dim3(kChunkThreads),
         vectors ? embed_rows<kVector, E> : embed_rows<1, E>, s,
         RowDivisors{{s.width / step, limit}, {s.sequence, limit}}, tokens, kept, table, positions,
         y);
}

std::int64_t embedding_backward_bytes(const EmbeddingShape& s) {
  return embedding_backward_workspace(s.batch * s.sequence, s.width);
}

template <class E, class G>
void embedding_backward(const EmbeddingShape& s, const std::int64_t* tokens, const E* d_y,
                        G* d_table, G* d_positions, std::byte* workspace, cudaStream_t stream) {
  constexpr int kStep = sizeof(G) == 2 ? 8 : 4;
  if (s.batch * s.sequence * s.width == 0) return;
  const auto rows = static_cast<int>(s.batch * s.sequence);
  const bool vectors = takes_vectors(d_y) && s.width % kStep == 0;
  if (d_table != nullptr) {
    auto* const sorted = reinterpret_cast<int*>(workspace);
    int* const keys = sorted + rows;
    const std::int64_t segments = embedding_segments(rows);
    auto* const sums =
        reinterpret_cast<float*>(workspace + embedding_backward_bytes(s)) - segments * s.width;
    const Run run = {keys, rows};
    const bool wide = vectors && takes_vectors(d_table) && takes_vectors(sums);
    launch(stream, "embedding rows", chunk_blocks(rows), dim3(kChunkThreads), sort_rows, rows,
           tokens, sorted, keys);
    launch(stream, "embedding backward", dim3(static_cast<unsigned>(rows)), dim3(kChunkThreads),
           wide ? add_token_rows<kStep, E, G> : add_token_rows<1, E, G>, run, s.width, sorted, d_y,
           d_table, sums);
    launch(stream, "embedding segments", dim3(static_cast<unsigned>(segments / 2)),
           dim3(kChunkThreads), wide ? add_segments<kStep, G> : add_segments<1, G>, run, s.width,
           sums, d_table);
  }
  if (d_positions != nullptr) {
    const bool wide = vectors && takes_vectors(d_positions);
    const int step = wide ? kStep : 1;
    const dim3 blocks = chunk_blocks(s.sequence * s.width / step);
    launch(stream, "positions backward", blocks, dim3(kChunkThreads),
           wide ? add_position_rows<kStep, E, G> : add_position_rows<1, E, G>, s,
           Divisor(s.width / step, chunks_of(blocks)), d_y, d_positions);
  }
}

template void embedding_forward(const EmbeddingShape&, const std::int64_t*, std::int64_t*,
                                const float*, const float*, float*, cudaStream_t);
template void embedding_forward(const EmbeddingShape&, const std::int64_t*, std::int64_t*,
                                const Bf16*, const Bf16*, Bf16*, cudaStream_t);
template void embedding_backward(const EmbeddingShape&, const std::int64_t*, const float*, float*,
                                 float*, std::byte*, cudaStream_t);
template void embedding_backward(const EmbeddingShape&, const std::int64_t*, const Bf16*, float*,
                                 float*, std::byte*, cudaStream_t);
template void embedding_backward(const EmbeddingShape&, const std::int64_t*, const Bf16*, Bf16*,
                                 Bf16*, std::byte*, cudaStream_t);

}  // namespace shardwise::exec::cuda
