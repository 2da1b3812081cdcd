#include "executor/kernels/products/vocabulary_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/kernels/products/linear.h"
#include "executor/kernels/wide.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPartRowsATask = 4;

template <class E>
SHARDWISE_INLINE RowStatistics statistics_of(const E* row, std::int64_t count) {
  float highest = to_float(row[0]);
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    const float* in = block.of(row + first, n);
    highest = lane_max(n, highest, [&](std::int64_t j) SHARDWISE_INLINE_CALL { return in[j]; });
  });
  const float sum = wide_sum(
      count, row, [&](float each) SHARDWISE_INLINE_CALL { return exp_of(each - highest); });
  return {highest, sum, 0};
}
SHARDWISE_VECTOR_CLONES RowStatistics row_statistics(const float* row, std::int64_t n) {
  return statistics_of(row, n);
}
SHARDWISE_VECTOR_CLONES RowStatistics row_statistics(const Bf16* row, std::int64_t n) {
  return statistics_of(row, n);
}

/// Logits become share x e^(logit - highest).
template <class E>
SHARDWISE_INLINE void weigh(E* row, std::int64_t count, float highest, float share) {
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    const float* in = block.of(row + first, n);
    float* out = block.for_store(row + first);
    for (std::int64_t j = 0; j < n; ++j) out[j] = exp_of(in[j] - highest) * share;
    block.store(n, row + first);
  });
}
SHARDWISE_VECTOR_CLONES void weigh_row(float* row, std::int64_t n, float highest, float share) {
  weigh(row, n, highest, share);
}
SHARDWISE_VECTOR_CLONES void weigh_row(Bf16* row, std::int64_t n, float highest, float share) {
  weigh(row, n, highest, share);
}

/// Of a whole row, from what each rank knows of its part, in the order of ranks.
RowStatistics joined(const VocabularyShape& s, const RowStatistics* all, std::int64_t row) {
  const auto of = [&](std::int64_t rank) -> const RowStatistics& {
    return all[rank * s.rows + row];
  };
  RowStatistics whole = {of(0).highest, 0, 0};
  for (std::int64_t rank = 1; rank < s.ranks; ++rank) {
    whole.highest = std::max(whole.highest, of(rank).highest);
  }
  for (std::int64_t rank = 0; rank < s.ranks; ++rank) {
    whole.sum += of(rank).sum * std::exp(of(rank).highest - whole.highest);
    whole.target += of(rank).target;
  }
  return whole;
}

/// Turns a row of this rank's logits into the gradient of scale x the row's loss, which it returns.
template <class E>
float part_loss(const VocabularyShape& s, const RowStatistics& whole, std::int64_t target,
                float scale, E* row) {
  const float share = scale / whole.sum;
  const std::int64_t own = s.own(target);
  const float at_target = own >= 0 ? to_float(row[own]) : 0;
  weigh_row(row, s.vocabulary, whole.highest, share);
  if (own >= 0) row[own] = from_float<E>(exp_of(at_target - whole.highest) * share - scale);
  return whole.highest + std::log(whole.sum) - whole.target;
}

template <class Each>
void for_rows(std::int64_t rows, Workers& workers, Each each) {
  workers.run((rows + kPartRowsATask - 1) / kPartRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kPartRowsATask);
    for (std::int64_t row = task * kPartRowsATask; row < end; ++row) each(row);
  });
}

LinearShape linear_of(const VocabularyShape& s) {
  return {s.rows, s.hidden, s.vocabulary, s.hidden, s.vocabulary, false};
}

}  // namespace

template <class E>
void vocabulary_logits(const VocabularyShape& s, const E* x, const E* weight,
                       const std::int64_t* targets, E* logits, RowStatistics* own,
                       Workers& workers) {
  if (s.vocabulary == 0) {
    std::fill_n(own, s.rows, RowStatistics{-std::numeric_limits<float>::infinity(), 0, 0});
    return;
  }
  linear_forward<E>(linear_of(s), x, weight, nullptr, logits, false, workers);
  for_rows(s.rows, workers, [&](std::int64_t row) {
    const E* of_row = logits + row * s.vocabulary;
    own[row] = row_statistics(of_row, s.vocabulary);
    const std::int64_t target = s.own(targets[row]);
    if (target >= 0) own[row].target = to_float(of_row[target]);
  });
}

template <class E, class G>
void vocabulary_gradients(const VocabularyShape& s, E* x, const E* weight,
                          const std::int64_t* targets, const RowStatistics* all, float scale,
                          E* logits, float* losses, G* d_weight, LossSum& loss, Workers& workers) {
  for_rows(s.rows, workers, [&](std::int64_t row) {
    E* of_row = logits + row * s.vocabulary;
    if (targets[row] == kIgnored) {
      std::fill_n(of_row, s.vocabulary, E{});
      losses[row] = 0;
      return;
    }
    losses[row] = part_loss(s, joined(s, all, row), targets[row], scale, of_row);
  });
  for (std::int64_t row = 0; row < s.rows; ++row) {
    if (targets[row] == kIgnored) continue;
    loss.loss += static_cast<double>(losses[row]);
    ++loss.tokens;
  }
  if (s.vocabulary == 0) {
    std::fill_n(x, s.rows * s.hidden, E{});
    return;
  }
  linear_backward_weight<E, G>(linear_of(s), x, logits, d_weight, nullptr, workers);
  linear_backward_input<E>(linear_of(s), logits, weight, x, false, workers);
}

template void vocabulary_logits(const VocabularyShape&, const float*, const float*,
                                const std::int64_t*, float*, RowStatistics*, Workers&);
template void vocabulary_logits(const VocabularyShape&, const Bf16*, const Bf16*,
                                const std::int64_t*, Bf16*, RowStatistics*, Workers&);
template void vocabulary_gradients(const VocabularyShape&, float*, const float*,
                                   const std::int64_t*, const RowStatistics*, float, float*, float*,
                                   float*, LossSum&, Workers&);
template void vocabulary_gradients(const VocabularyShape&, Bf16*, const Bf16*, const std::int64_t*,
                                   const RowStatistics*, float, Bf16*, float*, float*, LossSum&,
                                   Workers&);
template void vocabulary_gradients(const VocabularyShape&, Bf16*, const Bf16*, const std::int64_t*,
                                   const RowStatistics*, float, Bf16*, float*, Bf16*, LossSum&,
                                   Workers&);

}  // namespace shardwise::exec
