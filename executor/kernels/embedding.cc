#include "executor/kernels/embedding.h"

#include <algorithm>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kLookupRowsATask = 64;
constexpr std::int64_t kGradientColumnsATask = 128;

template <class E>
void add_to(float* sum, const E* row, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += to_float(row[i]);
}

/// sum += the rows of d_y, of a width, whose number is one that `takes` says; rounded once.
template <class E, class Takes>
void add_rows(Bf16* sum, const E* d_y, std::int64_t rows, std::int64_t width, std::int64_t count,
              Takes takes) {
  float sums[kGradientColumnsATask] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    if (takes(row)) add_to(sums, d_y + row * width, count);
  }
  for (std::int64_t i = 0; i < count; ++i) add_rounded(sum[i], sums[i]);
}

/// Some columns of both gradients.
template <class E>
void columns_backward(const EmbeddingShape& s, const std::int64_t* tokens, const E* d_y,
                      float* d_table, float* d_positions, std::int64_t count) {
  for (std::int64_t row = 0; row < s.batch * s.sequence; ++row) {
    const E* from = d_y + row * s.width;
    const std::int64_t own = s.row_of(tokens[row]);
    if (d_table != nullptr && own >= 0) add_to(d_table + own * s.width, from, count);
    if (d_positions != nullptr) add_to(d_positions + row % s.sequence * s.width, from, count);
  }
}

template <class E>
void columns_backward(const EmbeddingShape& s, const std::int64_t* tokens, const E* d_y,
                      Bf16* d_table, Bf16* d_positions, std::int64_t count) {
  const std::int64_t rows = s.batch * s.sequence;
  for (std::int64_t row = 0; row < rows && d_table != nullptr; ++row) {
    const std::int64_t token = tokens[row];
    if (s.row_of(token) < 0) continue;
    if (std::find(tokens, tokens + row, token) != tokens + row) continue;  // is in the sum
    add_rows(d_table + s.row_of(token) * s.width, d_y, rows, s.width, count,
             [&](std::int64_t each) { return tokens[each] == token; });
  }
  for (std::int64_t at = 0; at < s.sequence && d_positions != nullptr; ++at) {
    add_rows(d_positions + at * s.width, d_y, rows, s.width, count,
             [&](std::int64_t each) { return each % s.sequence == at; });
  }
}

}  // namespace

template <class E>
void embedding_forward(const EmbeddingShape& s, const std::int64_t* tokens, const E* table,
                       const E* positions, E* y, Workers& workers) {
  const std::int64_t rows = s.batch * s.sequence;
  workers.run((rows + kLookupRowsATask - 1) / kLookupRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kLookupRowsATask);
    for (std::int64_t row = task * kLookupRowsATask; row < end; ++row) {
      const std::int64_t own = s.row_of(tokens[row]);
      const E* from = own < 0 ? nullptr : table + own * s.width;
      E* to = y + row * s.width;
      const E* position = positions != nullptr ? positions + row % s.sequence * s.width : nullptr;
      if (own < 0 || position == nullptr) {
        const E* only = own < 0 ? position : from;
        if (only != nullptr) {
          std::copy_n(only, s.width, to);
        } else {
          std::fill_n(to, s.width, E{});
        }
        continue;
      }
      for (std::int64_t i = 0; i < s.width; ++i) {
        to[i] = from_float<E>(to_float(from[i]) + to_float(position[i]));
      }
    }
  });
}

template <class E, class G>
void embedding_backward(const EmbeddingShape& s, const std::int64_t* tokens, const E* d_y,
                        G* d_table, G* d_positions, Workers& workers) {
  // A task has some columns of all rows: tokens that occur twice are added in their order.
  workers.run(
      (s.width + kGradientColumnsATask - 1) / kGradientColumnsATask, [&](std::int64_t task) {
        const std::int64_t first = task * kGradientColumnsATask;
        const std::int64_t count = std::min(kGradientColumnsATask, s.width - first);
        columns_backward(s, tokens, d_y + first, d_table != nullptr ? d_table + first : nullptr,
                         d_positions != nullptr ? d_positions + first : nullptr, count);
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
template void embedding_backward(const EmbeddingShape&, const std::int64_t*, const Bf16*, Bf16*,
                                 Bf16*, Workers&);

}  // namespace shardwise::exec
