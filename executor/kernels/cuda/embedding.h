#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "executor/kernels/embedding.h"

namespace shardwise::exec::cuda {

// The embedding of executor/kernels/embedding.h on a stream of a GPU, with the CPU's bits, but for
// the gradient of a token of more than kEmbeddingSegment rows. They return when they are issued.

/// \param kept  left with a copy of tokens; null for none
template <class E>
void embedding_forward(const EmbeddingShape& shape, const std::int64_t* tokens, std::int64_t* kept,
                       const E* table, const E* positions, E* y, cudaStream_t stream);

/// Bytes of workspace of the backward, 16-byte aligned: embedding_backward_workspace().
std::int64_t embedding_backward_bytes(const EmbeddingShape& shape);

/// A token of more than kEmbeddingSegment rows has them summed by segments of so many, and the sums
/// in their order. Each row is compared with all others, some 4 10^9 times for 64k tokens.
/// \pre fewer than 2^31 rows, and rows of the table \param workspace  not used where d_table is
/// null
template <class E, class G>
void embedding_backward(const EmbeddingShape& shape, const std::int64_t* tokens, const E* d_y,
                        G* d_table, G* d_positions, std::byte* workspace, cudaStream_t stream);

}  // namespace shardwise::exec::cuda
