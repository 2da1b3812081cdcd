#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

struct EmbeddingShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t width = 0;
  // First token of a table whose rows ranks share: those of tokens `first` … first + rows - 1 are
  // here, and other tokens have none; rows 0: all are here.
  std::int64_t first = 0;
  std::int64_t rows = 0;

  /// The row of a token, or -1.
  std::int64_t row_of(std::int64_t token) const {
    if (rows == 0) return token;
    return token >= first && token < first + rows ? token - first : -1;
  }
};

/// y [batch, sequence, width] = table[tokens] + positions[0 … sequence - 1].
///   tokens [batch, sequence], table [vocabulary, width], positions [at least sequence, width]
/// A row that is not here counts as zeros. \param positions  null for none
/// \pre tokens are rows of the whole table
template <class E>
void embedding_forward(const EmbeddingShape& shape, const std::int64_t* tokens, const E* table,
                       const E* positions, E* y, Workers& workers);

/// d_table[tokens] += d_y and d_positions += the sum of d_y over the batch, rows of tokens that
/// occur several times in their order. Summed in fp32; where G is Bf16 a token's rows are summed
/// before they join what was there. \param d_table, d_positions  null when not trained
template <class E, class G>
void embedding_backward(const EmbeddingShape& shape, const std::int64_t* tokens, const E* d_y,
                        G* d_table, G* d_positions, Workers& workers);

}  // namespace shardwise::exec
