#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"
#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

/// Sum of the loss of some tokens. The loss of a step is the sum over its tokens by their count.
struct LossSum {
  double loss = 0;          // natural logarithm, summed over `tokens`
  std::int64_t tokens = 0;  // whose target is not kIgnored
};
inline constexpr std::int64_t kIgnored = -100;  // as in PyTorch's cross_entropy

/// A projection to the vocabulary and its cross-entropy, by chunks of rows, so that the logits are
/// never whole.
struct CrossEntropyShape {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t chunk = 0;  // rows at a time, loss_chunk_rows
};

/// Bytes of workspace: the logits of a chunk in `dtype`, and the loss of each row.
std::int64_t cross_entropy_bytes(const CrossEntropyShape& shape, DType dtype);

/// Turns rows of logits into the gradients of scale x their losses, which go to `losses`; 0 where
/// the target is kIgnored.   logits [rows, vocabulary], targets and losses [rows]
template <class E>
void loss_rows(std::int64_t rows, std::int64_t vocabulary, const std::int64_t* targets, float scale,
               E* logits, float* losses, Workers& workers);

/// The loss, log(sum of e^logits) - logits[target] with logits = x weight^T, summed over rows and
/// added to `loss`; the gradient of scale x that sum, with respect to x in x's place and with
/// respect to weight added to d_weight.
///   x [rows, hidden], weight [vocabulary, hidden], targets [rows]: of the vocabulary, or kIgnored
/// \param d_weight  in G as linear_backward_weight, a chunk at a time; null when not trained
template <class E, class G>
void cross_entropy(const CrossEntropyShape& shape, E* x, const E* weight,
                   const std::int64_t* targets, float scale, G* d_weight, LossSum& loss,
                   std::byte* workspace, Workers& workers);

}  // namespace shardwise::exec
