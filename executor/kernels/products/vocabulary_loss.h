#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/products/cross_entropy.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

// A projection to the vocabulary whose rows ranks share, and its cross-entropy, in two parts: what
// each rank knows of the rows of its logits, and, when all ranks know that of all, the gradients.
// Source: Shoeybi et al., "Megatron-LM" (arXiv:1909.08053), section 3, parallel cross entropy.

struct VocabularyShape {
  std::int64_t rows = 0;  // of tokens, a chunk of a micro-batch
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;  // logits that are this rank's …
  std::int64_t first = 0;       // … and the token of the first
  std::int64_t ranks = 1;
  std::int64_t rank = 0;

  /// Number of a target among the rank's logits; -1 where it is none of them.
  std::int64_t own(std::int64_t target) const {
    return target >= first && target < first + vocabulary ? target - first : -1;
  }
};

/// Statistics of a row of logits on one rank.
struct RowStatistics {
  float highest = 0;  // minus infinity of no logits
  float sum = 0;      // of e^(logit - highest)
  float target = 0;   // the target's logit; 0 where it is another rank's
};

/// Logits of the chunk, x weight^T, and what is known of each row.
///   x [rows, hidden], weight [vocabulary, hidden], logits [rows, vocabulary],
///   targets and own [rows]
template <class E>
void vocabulary_logits(const VocabularyShape& shape, const E* x, const E* weight,
                       const std::int64_t* targets, E* logits, RowStatistics* own,
                       Workers& workers);

/// The loss of each row, the same on all ranks, since all add up what the ranks know in their
/// order; its sum is added to `loss`. x becomes this rank's part of the gradient of scale x that
/// sum, which the ranks still add up; that of weight is added to d_weight.
///   all [ranks, rows], losses [rows]
/// \param logits  replaced by their gradients  \param d_weight  null when not trained
template <class E, class G>
void vocabulary_gradients(const VocabularyShape& shape, E* x, const E* weight,
                          const std::int64_t* targets, const RowStatistics* all, float scale,
                          E* logits, float* losses, G* d_weight, LossSum& loss, Workers& workers);

}  // namespace shardwise::exec
