#pragma once

#include <cstdint>

#include "planner/spec/machine/dtype.h"

namespace shardwise {

// What kernels and collectives do, as data: shapes and bytes. planner/cost turns it into seconds,
// the executor into launches.

enum class Pass : std::uint8_t { forward, backward };

/// Where a GEMM puts its result.
enum class GemmOutput : std::uint8_t {
  written,   // in the operands' dtype; bf16 when that is narrower than 16 bits
  fp32_sum,  // added to an fp32 matrix in memory: main gradients of Megatron
  sum,       // added to a matrix of the `written` dtype
};

/// Work on the bytes that a kernel moves: where a processor computes more slowly than its
/// memory moves bytes (CPUs), that decides how fast it is.
enum class MoveKind : std::uint8_t {
  copy,  // copies, sums and zeros, in one type
  layer_norm,
  rms_norm,
  gelu,    // activations without a gate
  swiglu,  // activations with one
  rope,
  embedding,
  loss,
  optimizer,      // the update, with the cast to the weights that are computed with
  gradient_norm,  // the squares of gradients
  cast,           // copies into another type
};

/// `groups` products C[m, n] = A[m, k] B[k, n] in one kernel, of m rows each on average.
struct GemmWork {
  DType dtype = DType::bf16;
  GemmOutput output = GemmOutput::written;
  std::int64_t groups = 1;
  double m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  friend bool operator==(const GemmWork&, const GemmWork&) = default;
};

/// One attention call on one rank. q: [batch, seq_q, heads, qk_head_dim], k: [batch, seq_kv,
/// kv_heads, qk_head_dim], v: [batch, seq_kv, kv_heads, v_head_dim].
struct AttentionWork {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t seq_q = 1;
  std::int64_t seq_kv = 1;
  std::int64_t qk_head_dim = 128;
  std::int64_t v_head_dim = 128;
  std::int64_t window = 0;  // 0 = full
  bool causal = true;
  friend bool operator==(const AttentionWork&, const AttentionWork&) = default;
};

enum class CollectiveKind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  send_recv,
};

}  // namespace shardwise
