#pragma once

#include <compare>
#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// Causal attention; query head h reads key/value head h / (heads / kv_heads) (Ainslie et al.,
/// arXiv:2305.13245). With a window a query sees the `window` last positions, itself included.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // at most kMaxHeadDim
  std::int64_t window = 0;    // 0 = all positions before

  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  auto operator<=>(const AttentionShape&) const = default;
};
inline constexpr std::int64_t kMaxHeadDim = 256;

// qkv [batch, sequence, heads + 2 kv_heads, head_dim]: queries, keys, values of a token.
// out [batch, sequence, heads, head_dim]; log_sums [batch, heads, sequence], fp32. The scores are
// never whole: they are made by tiles, with a running maximum and sum (Dao et al.,
// arXiv:2205.14135, algorithm 1), and again in backward from log_sums (algorithm 4).

/// out = softmax(Q K^T / sqrt(head_dim)) V and log_sums = the logarithm of the softmax's sum.
template <class E>
void attention_forward(const AttentionShape& shape, const E* qkv, E* out, float* log_sums,
                       Workers& workers);

/// Bytes of workspace of attention_backward: gradients of the queries in fp32, and a number a row
/// and head.
std::int64_t attention_backward_bytes(const AttentionShape& shape);

/// Puts the gradients of queries, keys and values in their places. d_out as out.
template <class E>
void attention_backward(const AttentionShape& shape, E* qkv, const E* out, const float* log_sums,
                        const E* d_out, float* workspace, Workers& workers);

}  // namespace shardwise::exec
