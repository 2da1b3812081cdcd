#include "executor/transformer/block_memory.h"

#include <algorithm>

#include "executor/kernels/attention/attention.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

/// Bytes of the parts of a block: of those that are kept, or of those that are made again.
struct Sizes {
  enum class Of : std::uint8_t { all, kept, again };

  explicit Sizes(const BlockShape& s, Of of = Of::all) {
    const auto part = [&](bool made_again, std::int64_t bytes) {
      return of == Of::all || (of == Of::again) == made_again ? bytes : 0;
    };
    const std::int64_t statistics = s.stream_tokens() * kFloat * (s.rms ? 1 : 2);
    const std::int64_t stream_bytes = s.stream_bytes();
    norm_statistics = part(s.again.attention_norm, statistics);
    normed = part(s.again.attention_norm, stream_bytes);
    q_statistics = part(false, s.head_norms ? s.tokens() * s.heads * kFloat : 0);
    k_statistics = part(false, s.head_norms ? s.tokens() * s.kv_heads * kFloat : 0);
    queries = part(false, s.head_norms ? s.tokens() * s.q_width() * s.element_bytes() : 0);
    keys = part(false, s.head_norms ? s.tokens() * s.kv_width() * s.element_bytes() : 0);
    qkv = part(false, s.tokens() * s.qkv_width() * s.element_bytes());
    log_sums = part(s.again.attention, s.tokens() * s.heads * kFloat);
    attended = part(s.again.attention, s.tokens() * s.q_width() * s.element_bytes());
    middle = part(false, stream_bytes);
    mlp_statistics = part(s.again.mlp_norm, statistics);
    mlp_normed = part(s.again.mlp_norm, stream_bytes);
    up = part(false, s.tokens() * s.up_width() * s.element_bytes());
    activated = part(s.again.activation, s.tokens() * s.intermediate * s.element_bytes());
  }

  std::int64_t norm_statistics = 0;
  std::int64_t q_statistics = 0;
  std::int64_t k_statistics = 0;
  std::int64_t log_sums = 0;
  std::int64_t normed = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t qkv = 0;
  std::int64_t attended = 0;
  std::int64_t mlp_statistics = 0;
  std::int64_t middle = 0;
  std::int64_t mlp_normed = 0;
  std::int64_t up = 0;
  std::int64_t activated = 0;
};

std::int64_t take(std::int64_t& at, std::int64_t bytes) {
  const std::int64_t here = at;
  at += bytes;
  return here;
}

BlockOffsets one_after_the_other(const Sizes& size) {
  BlockOffsets o;
  std::int64_t at = 0;
  o.attention_statistics = take(at, size.norm_statistics);
  o.q_statistics = take(at, size.q_statistics);
  o.k_statistics = take(at, size.k_statistics);
  o.log_sums = take(at, size.log_sums);
  o.normed = take(at, size.normed);
  o.queries = take(at, size.queries);
  o.keys = take(at, size.keys);
  o.qkv = take(at, size.qkv);
  o.attended = take(at, size.attended);
  o.second_half = at;
  o.mlp_statistics = take(at, size.mlp_statistics);
  o.middle = take(at, size.middle);
  o.mlp_normed = take(at, size.mlp_normed);
  o.up = take(at, size.up);
  o.activated = take(at, size.activated);
  o.bytes = at;
  return o;
}

}  // namespace

BlockOffsets all_offsets(const BlockShape& shape) {
  return one_after_the_other(Sizes(shape, Sizes::Of::kept));
}

BlockOffsets again_offsets(const BlockShape& shape) {
  if (!shape.again.any()) return {};
  return one_after_the_other(Sizes(shape, Sizes::Of::again));
}

PassingPlaces passing_places(const BlockShape& shape) {
  const BlockOffsets kept = all_offsets(shape);
  const Sizes again(shape, Sizes::Of::again);
  PassingPlaces places;
  const std::int64_t first =
      std::max(again.normed + again.norm_statistics, again.attended + again.log_sums);
  const std::int64_t second = again.mlp_normed + again.mlp_statistics;
  places.in_saved = first <= kept.bytes - kept.second_half;
  places.in_activated = !shape.again.activation && second <= kept.bytes - kept.activated;
  places.workspace =
      std::max({places.in_saved ? 0 : first, again.activated, places.in_activated ? 0 : second});
  return places;
}

BlockOffsets passing_offsets(const BlockShape& shape) {
  const Sizes size(shape);
  const std::int64_t gathered = shape.gathered_bytes();
  BlockOffsets o;
  // What an operation reads and what it makes lie at opposite ends.
  o.bytes = std::max({size.norm_statistics + size.normed,
                      size.normed + gathered + size.queries + size.keys + size.qkv,
                      size.q_statistics + size.k_statistics + size.queries + size.keys + size.qkv,
                      size.log_sums + size.attended + size.qkv, size.normed + gathered + size.up,
                      size.activated + size.up, size.activated + gathered});
  // What the projections read; over it later what the other products make.
  o.gathered = size.normed;
  o.partial = o.bytes - gathered;
  o.normed = 0;
  o.attention_statistics = size.normed;
  o.qkv = o.bytes - size.qkv;
  o.keys = o.qkv - size.keys;
  o.queries = o.keys - size.queries;
  o.q_statistics = 0;  // over `normed`, which the projections have read
  o.k_statistics = size.q_statistics;
  o.log_sums = 0;
  o.attended = size.log_sums;
  o.mlp_normed = 0;
  o.mlp_statistics = size.normed;
  o.up = o.bytes - size.up;
  o.activated = 0;
  return o;
}

AttentionScratch attention_scratch(const BlockShape& s, const BlockOffsets& all) {
  AttentionScratch scratch;
  scratch.d_attended =
      attention_backward_bytes({s.batch, s.sequence, s.heads, s.kv_heads, s.head_dim, s.window});
  scratch.bytes = scratch.d_attended + s.tokens() * s.q_width() * s.element_bytes();
  scratch.fits = scratch.bytes <= all.bytes - all.second_half;
  const BlockOffsets again = again_offsets(s);
  scratch.fits_again = !scratch.fits && scratch.bytes <= again.bytes - again.second_half;
  return scratch;
}

LayerBytes block_bytes(const BlockShape& s) {
  const BlockOffsets all = all_offsets(s);
  const AttentionScratch scratch = attention_scratch(s, all);
  const std::int64_t beside = scratch.fits || scratch.fits_again ? 0 : scratch.bytes;
  LayerBytes bytes;
  bytes.saved = s.stream_bytes() + (s.recompute ? 0 : all.bytes);
  bytes.forward_workspace =
      s.recompute ? passing_offsets(s).bytes : passing_places(s).workspace + s.gathered_bytes();
  bytes.backward_workspace = (s.recompute ? all.bytes : again_offsets(s).bytes) + beside;
  bytes.gathered = s.gathered_bytes();
  return bytes;
}

}  // namespace shardwise::exec
