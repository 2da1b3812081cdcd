#include "executor/transformer/block_memory.h"

#include <algorithm>

#include "executor/kernels/attention.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

/// Bytes of the parts of a block.
struct Sizes {
  explicit Sizes(const BlockShape& s)
      : norm_statistics(s.tokens() * kFloat * (s.rms ? 1 : 2)),
        q_statistics(s.head_norms ? s.tokens() * s.heads * kFloat : 0),
        k_statistics(s.head_norms ? s.tokens() * s.kv_heads * kFloat : 0),
        log_sums(s.tokens() * s.heads * kFloat),
        stream(s.tokens() * s.hidden * s.element_bytes),
        queries(s.head_norms ? s.tokens() * s.q_width() * s.element_bytes : 0),
        keys(s.head_norms ? s.tokens() * s.kv_width() * s.element_bytes : 0),
        qkv(s.tokens() * s.qkv_width() * s.element_bytes),
        attended(s.tokens() * s.q_width() * s.element_bytes),
        up(s.tokens() * s.up_width() * s.element_bytes),
        activated(s.tokens() * s.intermediate * s.element_bytes) {}

  std::int64_t norm_statistics;
  std::int64_t q_statistics;
  std::int64_t k_statistics;
  std::int64_t log_sums;
  std::int64_t stream;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t qkv;
  std::int64_t attended;
  std::int64_t up;
  std::int64_t activated;
};

std::int64_t take(std::int64_t& at, std::int64_t bytes) {
  const std::int64_t here = at;
  at += bytes;
  return here;
}

}  // namespace

BlockOffsets all_offsets(const BlockShape& shape) {
  const Sizes size(shape);
  BlockOffsets o;
  std::int64_t at = 0;
  o.attention_statistics = take(at, size.norm_statistics);
  o.q_statistics = take(at, size.q_statistics);
  o.k_statistics = take(at, size.k_statistics);
  o.log_sums = take(at, size.log_sums);
  o.normed = take(at, size.stream);
  o.queries = take(at, size.queries);
  o.keys = take(at, size.keys);
  o.qkv = take(at, size.qkv);
  o.attended = take(at, size.attended);
  o.second_half = at;
  o.mlp_statistics = take(at, size.norm_statistics);
  o.middle = take(at, size.stream);
  o.mlp_normed = take(at, size.stream);
  o.up = take(at, size.up);
  o.activated = take(at, size.activated);
  o.bytes = at;
  return o;
}

BlockOffsets passing_offsets(const BlockShape& shape) {
  const Sizes size(shape);
  BlockOffsets o;
  // What an operation reads and what it makes lie at opposite ends.
  o.bytes = std::max(
      {size.norm_statistics + size.stream, size.stream + size.queries + size.keys + size.qkv,
       size.q_statistics + size.k_statistics + size.queries + size.keys + size.qkv,
       size.log_sums + size.attended + size.qkv, size.stream + size.up, size.activated + size.up});
  o.normed = 0;
  o.attention_statistics = size.stream;
  o.qkv = o.bytes - size.qkv;
  o.keys = o.qkv - size.keys;
  o.queries = o.keys - size.queries;
  o.q_statistics = 0;  // over `normed`, which the projections have read
  o.k_statistics = size.q_statistics;
  o.log_sums = 0;
  o.attended = size.log_sums;
  o.mlp_normed = 0;
  o.mlp_statistics = size.stream;
  o.up = o.bytes - size.up;
  o.activated = 0;
  return o;
}

AttentionScratch attention_scratch(const BlockShape& s, const BlockOffsets& all) {
  AttentionScratch scratch;
  scratch.d_attended =
      attention_backward_bytes({s.batch, s.sequence, s.heads, s.kv_heads, s.head_dim, s.window});
  scratch.bytes = scratch.d_attended + s.tokens() * s.q_width() * s.element_bytes;
  scratch.fits = scratch.bytes <= all.bytes - all.second_half;
  return scratch;
}

LayerBytes block_bytes(const BlockShape& s) {
  const BlockOffsets all = all_offsets(s);
  const AttentionScratch scratch = attention_scratch(s, all);
  LayerBytes bytes;
  bytes.saved = s.tokens() * s.hidden * s.element_bytes + (s.recompute ? 0 : all.bytes);
  bytes.forward_workspace = s.recompute ? passing_offsets(s).bytes : 0;
  bytes.backward_workspace = (s.recompute ? all.bytes : 0) + (scratch.fits ? 0 : scratch.bytes);
  return bytes;
}

}  // namespace shardwise::exec
