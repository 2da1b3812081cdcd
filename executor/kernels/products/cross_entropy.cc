#include "executor/kernels/products/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "executor/kernels/products/linear.h"
#include "executor/kernels/wide.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kLossRowsATask = 4;

/// Turns a row of logits into the gradient of scale x its loss, which it returns. The row's
/// logits are read in fp32 whatever they are stored in.
template <class E>
SHARDWISE_INLINE float row_loss(E* row, std::int64_t count, std::int64_t target, float scale) {
  float highest = to_float(row[0]);
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    const float* in = block.of(row + first, n);
    highest = lane_max(n, highest, [&](std::int64_t j) SHARDWISE_INLINE_CALL { return in[j]; });
  });
  const float sum = wide_sum(
      count, row, [&](float each) SHARDWISE_INLINE_CALL { return exp_of(each - highest); });
  const float at_target = to_float(row[target]);
  const float share = scale / sum;
  for_blocks_of<E>(count, [&](std::int64_t first, std::int64_t n) SHARDWISE_INLINE_CALL {
    WideBlock<E> block;
    const float* in = block.of(row + first, n);
    float* out = block.for_store(row + first);
    for (std::int64_t j = 0; j < n; ++j) out[j] = exp_of(in[j] - highest) * share;
    block.store(n, row + first);
  });
  row[target] = from_float<E>(exp_of(at_target - highest) * share - scale);
  return highest + std::log(sum) - at_target;
}

SHARDWISE_VECTOR_CLONES float loss_of(float* row, std::int64_t n, std::int64_t target,
                                      float scale) {
  return row_loss(row, n, target, scale);
}
SHARDWISE_VECTOR_CLONES float loss_of(Bf16* row, std::int64_t n, std::int64_t target, float scale) {
  return row_loss(row, n, target, scale);
}

}  // namespace

std::int64_t cross_entropy_bytes(const CrossEntropyShape& s, DType dtype) {
  return s.chunk * s.vocabulary * bytes_of(dtype) +
         s.rows * static_cast<std::int64_t>(sizeof(float));
}

template <class E>
void loss_rows(std::int64_t rows, std::int64_t vocabulary, const std::int64_t* targets, float scale,
               E* logits, float* losses, Workers& workers) {
  workers.run((rows + kLossRowsATask - 1) / kLossRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kLossRowsATask);
    for (std::int64_t r = task * kLossRowsATask; r < end; ++r) {
      E* row = logits + r * vocabulary;
      if (targets[r] == kIgnored) {
        std::fill_n(row, vocabulary, E{});
        losses[r] = 0;
      } else {
        losses[r] = loss_of(row, vocabulary, targets[r], scale);
      }
    }
  });
}

template <class E, class G>
void cross_entropy(const CrossEntropyShape& s, E* x, const E* weight, const std::int64_t* targets,
                   float scale, G* d_weight, LossSum& loss, std::byte* workspace,
                   Workers& workers) {
  auto* losses = reinterpret_cast<float*>(workspace);
  E* logits = reinterpret_cast<E*>(losses + s.rows);
  for (std::int64_t first = 0; first < s.rows; first += s.chunk) {
    const std::int64_t rows = std::min(s.chunk, s.rows - first);
    E* of_chunk = x + first * s.hidden;
    const LinearShape linear = {rows, s.hidden, s.vocabulary, s.hidden, s.vocabulary, false};
    linear_forward<E>(linear, of_chunk, weight, nullptr, logits, false, workers);
    loss_rows<E>(rows, s.vocabulary, targets + first, scale, logits, losses + first, workers);
    linear_backward_weight<E, G>(linear, of_chunk, logits, d_weight, nullptr, workers);
    linear_backward_input<E>(linear, logits, weight, of_chunk, false, workers);
  }
  for (std::int64_t row = 0; row < s.rows; ++row) {
    if (targets[row] == kIgnored) continue;
    loss.loss += static_cast<double>(losses[row]);
    ++loss.tokens;
  }
}

template void loss_rows(std::int64_t, std::int64_t, const std::int64_t*, float, float*, float*,
                        Workers&);
template void loss_rows(std::int64_t, std::int64_t, const std::int64_t*, float, Bf16*, float*,
                        Workers&);
template void cross_entropy(const CrossEntropyShape&, float*, const float*, const std::int64_t*,
                            float, float*, LossSum&, std::byte*, Workers&);
template void cross_entropy(const CrossEntropyShape&, Bf16*, const Bf16*, const std::int64_t*,
                            float, float*, LossSum&, std::byte*, Workers&);
template void cross_entropy(const CrossEntropyShape&, Bf16*, const Bf16*, const std::int64_t*,
                            float, Bf16*, LossSum&, std::byte*, Workers&);

}  // namespace shardwise::exec
