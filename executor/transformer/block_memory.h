#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/transformer/block_shape.h"

namespace shardwise::exec {

/// Offsets in bytes of what a block makes between its input and its output.
struct BlockOffsets {
  // fp32
  std::int64_t attention_statistics = 0;  // of the norm before attention
  std::int64_t q_statistics = 0;
  std::int64_t k_statistics = 0;
  std::int64_t log_sums = 0;
  std::int64_t mlp_statistics = 0;  // of the norm before the feed-forward
  // elements
  std::int64_t normed = 0;      // [tokens, hidden]
  std::int64_t queries = 0;     // [tokens, heads, head_dim] before their norm, when they have one
  std::int64_t keys = 0;        // [tokens, kv_heads, head_dim]
  std::int64_t qkv = 0;         // [tokens, heads + 2 kv_heads, head_dim]
  std::int64_t attended = 0;    // [tokens, heads, head_dim]
  std::int64_t middle = 0;      // [tokens, hidden] the stream between attention and feed-forward
  std::int64_t mlp_normed = 0;  // [tokens, hidden]
  std::int64_t up = 0;          // [tokens, up_width]
  std::int64_t activated = 0;   // [tokens, intermediate]

  // elements, of all tokens where the stream's are spread over ranks; of passing_offsets() alone
  std::int64_t gathered = 0;  // [all tokens, hidden] what projections read
  std::int64_t partial = 0;   // [all tokens, hidden] what the product that ends a half makes

  std::int64_t second_half = 0;  // where mlp_statistics to activated lie, one after the other
  std::int64_t bytes = 0;
};

/// Everything beside everything: what backward needs, without what operations make again.
BlockOffsets all_offsets(const BlockShape& shape);
/// And that, in a workspace; of what is not made again the offset says nothing.
BlockOffsets again_offsets(const BlockShape& shape);
/// Places of tensors that are made again, while forward reads them.
struct PassingPlaces {
  bool in_saved = false;       // the first half's where the second half will be kept …
  std::int64_t first = 0;      // … else in the workspace
  bool in_activated = false;   // what the second norm makes where the activation will be kept
  std::int64_t workspace = 0;  // bytes
};
PassingPlaces passing_places(const BlockShape& shape);
/// Each thing as long as forward reads it, one over the other; without `middle`, which is the
/// stream.
BlockOffsets passing_offsets(const BlockShape& shape);

/// Backward of attention also needs the gradient of its output and its kernel's workspace. They
/// take the place of the second half, whose backward is done, if they fit: of what was kept of it,
/// or of what was made again.
struct AttentionScratch {
  std::int64_t workspace = 0;  // offset in bytes
  std::int64_t d_attended = 0;
  std::int64_t bytes = 0;
  bool fits = false;        // offsets count from second_half; else from a workspace of its own
  bool fits_again = false;  // from that of again_offsets
};
AttentionScratch attention_scratch(const BlockShape& shape, const BlockOffsets& all);

/// Bytes of a block, as LayerBytes has them; tables left at 0.
LayerBytes block_bytes(const BlockShape& shape);

}  // namespace shardwise::exec
