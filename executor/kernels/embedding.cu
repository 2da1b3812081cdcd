#include "executor/kernels/cuda/chunks.h"
#include "executor/kernels/cuda/embedding.h"
#include "planner/cost/gpu_workspace.h"

namespace shardwise::exec::cuda {
namespace {

/// A chunk of a row of y.
template <int kStep, class E>
__global__ void __launch_bounds__(kChunkThreads)
    embed_rows(EmbeddingShape s, const std::int64_t* tokens, std::int64_t* kept, const E* table,
               const E* positions, E* y) {
  const std::int64_t first = chunk_of_thread() * kStep;
  const std::int64_t row = first / s.width;
  const std::int64_t column = first % s.width;
  if (row >= s.batch * s.sequence) return;
  const std::int64_t token = tokens[row];
  if (kept != nullptr && column == 0) kept[row] = token;
  auto made = load_chunk<kStep>(table + token * s.width + column);
  if (positions != nullptr) {
    const auto position = load_chunk<kStep>(positions + row % s.sequence * s.width + column);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) {
      made.at[i] = narrow<E>(widen(made.at[i]) + widen(position.at[i]));
    }
  }
  store_chunk(y + first, made);
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

/// to += the rows of d_y whose numbers are row_of(0) … row_of(count - 1), a chunk of the columns.
template <int kStep, class E, class G, class Rows>
__device__ void add_rows(const E* d_y, std::int64_t width, int count, Rows row_of, G* to) {
  constexpr bool kJoinsLast = sizeof(G) == 2;
  auto made = load_chunk<kStep>(to);
  float sums[kStep];
  SHARDWISE_UNROLL
  for (int i = 0; i < kStep; ++i) sums[i] = kJoinsLast ? 0.0F : widen(made.at[i]);
  for (int r = 0; r < count; ++r) {
    const auto in = load_chunk<kStep>(d_y + row_of(r) * width);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) sums[i] += widen(in.at[i]);
  }
  SHARDWISE_UNROLL
  for (int i = 0; i < kStep; ++i) {
    made.at[i] = narrow<G>(kJoinsLast ? widen(made.at[i]) + sums[i] : sums[i]);
  }
  store_chunk(to, made);
}

/// A block for each sorted row; the first of a token's adds them all.
template <int kStep, class E, class G>
__global__ void __launch_bounds__(kChunkThreads)
    add_token_rows(int rows, std::int64_t width, const int* sorted, const int* keys, const E* d_y,
                   G* d_table) {
  const int first = static_cast<int>(blockIdx.x);
  const int token = keys[first];
  if (first > 0 && keys[first - 1] == token) return;
  int end = first + 1;  // of the token's rows, between here and `beyond`
  for (int beyond = rows; end < beyond;) {
    const int middle = (end + beyond) / 2;
    if (keys[middle] == token) {
      end = middle + 1;
    } else {
      beyond = middle;
    }
  }
  for (std::int64_t column = static_cast<int>(threadIdx.x) * kStep; column < width;
       column += kChunkThreads * kStep) {
    add_rows<kStep>(
        d_y + column, width, end - first,
        [&](int r) { return static_cast<std::int64_t>(sorted[first + r]); },
        d_table + token * width + column);
  }
}

/// A chunk of a position, over the batch.
template <int kStep, class E, class G>
__global__ void __launch_bounds__(kChunkThreads)
    add_position_rows(EmbeddingShape s, const E* d_y, G* d_positions) {
  const std::int64_t first = chunk_of_thread() * kStep;
  const std::int64_t position = first / s.width;
  if (position >= s.sequence) return;
  add_rows<kStep>(
      d_y + first % s.width, s.width, static_cast<int>(s.batch),
      [&](int b) { return b * s.sequence + position; }, d_positions + first);
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
  launch(stream, "embedding", chunk_blocks(count / (vectors ? kVector : 1)), dim3(kChunkThreads),
         vectors ? embed_rows<kVector, E> : embed_rows<1, E>, s, tokens, kept, table, positions, y);
}

std::int64_t embedding_backward_bytes(const EmbeddingShape& s) {
  return embedding_backward_workspace(s.batch * s.sequence);
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
    launch(stream, "embedding rows", chunk_blocks(rows), dim3(kChunkThreads), sort_rows, rows,
           tokens, sorted, keys);
    launch(
        stream, "embedding backward", dim3(static_cast<unsigned>(rows)), dim3(kChunkThreads),
        vectors && takes_vectors(d_table) ? add_token_rows<kStep, E, G> : add_token_rows<1, E, G>,
        rows, s.width, sorted, keys, d_y, d_table);
  }
  if (d_positions != nullptr) {
    const bool wide = vectors && takes_vectors(d_positions);
    launch(stream, "positions backward", chunk_blocks(s.sequence * s.width / (wide ? kStep : 1)),
           dim3(kChunkThreads), wide ? add_position_rows<kStep, E, G> : add_position_rows<1, E, G>,
           s, d_y, d_positions);
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
