#include "executor/kernels/embedding.h"

#include <algorithm>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kRowsATask = 64;
constexpr std::int64_t kColumnsATask = 128;

template <class E>
void add_to(float* sum, const E* row, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += to_float(row[i]);
}

}  // namespace

template <class E>
void embedding_forward(const EmbeddingShape& s, const std::int64_t* tokens, const E* table,
                       const E* positions, E* y, Workers& workers) {
  const std::int64_t rows = s.batch * s.sequence;
  workers.run((rows + kRowsATask - 1) / kRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kRowsATask);
    for (std::int64_t row = task * kRowsATask; row < end; ++row) {
      const E* from = table + tokens[row] * s.width;
      E* to = y + row * s.width;
      if (positions == nullptr) {
        std::copy_n(from, s.width, to);
        continue;
      }
      const E* position = positions + row % s.sequence * s.width;
      for (std::int64_t i = 0; i < s.width; ++i) {
        to[i] = from_float<E>(to_float(from[i]) + to_float(position[i]));
      }
    }
  });
}

template <class E>
void embedding_backward(const EmbeddingShape& s, const std::int64_t* tokens, const E* d_y,
                        float* d_table, float* d_positions, Workers& workers) {
  // A task has some columns of all rows: tokens that occur twice are added in their order.
  workers.run((s.width + kColumnsATask - 1) / kColumnsATask, [&](std::int64_t task) {
    const std::int64_t first = task * kColumnsATask;
    const std::int64_t count = std::min(kColumnsATask, s.width - first);
    for (std::int64_t row = 0; row < s.batch * s.sequence; ++row) {
      const E* from = d_y + row * s.width + first;
      if (d_table != nullptr) add_to(d_table + tokens[row] * s.width + first, from, count);
      if (d_positions != nullptr) {
        add_to(d_positions + row % s.sequence * s.width + first, from, count);
      }
    }
  });
}

template void embedding_forward(const EmbeddingShape&, const std::int64_t*, const float*,
                                const float*, float*, Workers&);
template void embedding_forward(const EmbeddingShape&, const std::int64_t*, const Bf16*,
                                const Bf16*, Bf16*, Workers&);
template void embedding_backward(const EmbeddingShape&, const std::int64_t*, const float*, float*,
                                 float*, Workers&);
template void embedding_backward(const EmbeddingShape&, const std::int64_t*, const Bf16*, float*,
                                 float*, Workers&);

}  // namespace shardwise::exec
