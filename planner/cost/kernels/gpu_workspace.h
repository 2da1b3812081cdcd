#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "planner/cost/kernels/gemm_workspace.h"

namespace shardwise {

struct GpuSpec;
struct JobSpec;
struct Layout;
struct ModelSpec;

/// 10 * major + minor of CUDA's, of a GPU that our kernels are compiled for, by its architecture;
/// 0 for others. Where an architecture has several (Ampere 80, 86; Blackwell 100, 103) they need
/// the same workspaces; Blackwell's GPUs without tensor memory (120) are "blackwell-rtx".
/// Source: NVIDIA, CUDA C++ programming guide, Compute capabilities.
int cuda_capability(const GpuSpec& gpu);
/// The architecture of a capability, as clusters name it; empty where there is none such.
std::string_view cuda_architecture(int capability);

// Memory our kernels need on a GPU besides what a layer hands them. The executor's kernels ask the
// same functions.

/// Blocks of a norm's backward, each with sums over its part of `rows` runs of `width` elements:
/// some 4 for a multiprocessor, a multiple of 8. A block has several narrow runs at a time.
constexpr std::int64_t norm_backward_parts(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kMost = 512;
  constexpr std::int64_t kNarrow = 1024;
  constexpr std::int64_t kMultiple = 8;
  const std::int64_t rows_a_part = width <= kNarrow ? 16 : 4;
  const std::int64_t wanted = std::min(kMost, (rows + rows_a_part - 1) / rows_a_part);
  return (wanted + kMultiple - 1) / kMultiple * kMultiple;
}

/// The fp32 sums of both gradients of a norm's parameters, for `rows` runs of `width` elements.
constexpr std::int64_t norm_backward_workspace(std::int64_t rows, std::int64_t width) {
  return 2 * norm_backward_parts(rows, width) * width * 4;
}

/// Rows of one token that a block of the embedding's backward adds; more are cut into segments.
inline constexpr std::int64_t kEmbeddingSegment = 128;

/// Segments that have a place: as many of a run's begins as of its other segments, one each in any
/// kEmbeddingSegment rows.
constexpr std::int64_t embedding_segments(std::int64_t tokens) {
  return 2 * ((tokens + kEmbeddingSegment - 1) / kEmbeddingSegment);
}

/// The rows of a micro-batch sorted by token, their tokens, and fp32 sums of segments.
constexpr std::int64_t embedding_backward_workspace(std::int64_t tokens, std::int64_t width) {
  constexpr std::int64_t kPiece = 16;  // what vectors are aligned to
  const std::int64_t sorted = (2 * tokens * 4 + kPiece - 1) / kPiece * kPiece;
  return sorted + embedding_segments(tokens) * width * 4;
}

/// Bytes that sums of a bias gradient's parts may take.
inline constexpr std::int64_t kBiasGradientBytes = std::int64_t{1} << 20;
/// Parts of `rows` whose `width` fp32 sums are made side by side before they are added up; of 64
/// rows at least.
constexpr std::int64_t bias_gradient_parts(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kMost = 64;
  constexpr std::int64_t kRowsAPart = 64;
  const std::int64_t wanted =
      std::min({kMost, (rows + kRowsAPart - 1) / kRowsAPart, kBiasGradientBytes / (4 * width)});
  return std::max(wanted, std::int64_t{1});
}

/// Heads of attention on one rank.
struct AttentionHeads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// The backward of bf16 attention, of a micro-batch on one rank.
struct SdpaBackward {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  AttentionHeads heads;
  int capability = 0;          // 10 * major + minor of CUDA's
  bool deterministic = false;  // in one order: JobSpec::deterministic

  constexpr std::int64_t tokens() const { return batch * sequence; }
  /// Bytes of the scores' gradients in bf16.
  constexpr std::int64_t score_bytes() const { return 2 * tokens() * heads.heads * sequence; }
};

/// Whether cuDNN is asked for it: in one order it has all scores in memory, of 1 GiB at most here.
/// Others are our kernels', which have one order without.
constexpr bool sdpa_backward_by_cudnn(const SdpaBackward& b) {
  return !b.deterministic || b.score_bytes() <= std::int64_t{1} << 30;
}

/// Bytes an engine of cuDNN may need in the backward of bf16 attention besides our own workspace.
///
/// The queries' gradients in fp32 once more where its kernels of sm_80 run; gradients of keys and
/// values of every query's head where heads are grouped; the scores' gradients where it keeps to
/// one order. \pre sdpa_backward_by_cudnn()
/// Source: what cuDNN 9.19 says of its engines (tests/executor/cudnn).
constexpr std::int64_t sdpa_engine_bytes(const SdpaBackward& b) {
  constexpr std::int64_t kPiece = 256;
  const AttentionHeads& a = b.heads;
  const std::int64_t elements = b.tokens() * a.heads * a.head_dim;
  const bool own_kernels = b.capability / 10 == 9 || b.capability / 10 == 10;
  return elements * ((own_kernels ? 0 : 4) + (a.heads > a.kv_heads ? 4 : 0)) + kPiece +
         (b.deterministic ? b.score_bytes() : 0);
}

/// Workspace and the gradients of queries, keys and values, which it does not put in their places;
/// 0 where our kernels run it.
constexpr std::int64_t sdpa_backward_workspace(const SdpaBackward& b) {
  constexpr std::int64_t kPiece = 256;
  if (!sdpa_backward_by_cudnn(b)) return 0;
  const AttentionHeads& a = b.heads;
  const std::int64_t qkv = b.tokens() * (a.heads + 2 * a.kv_heads) * a.head_dim * 2;
  return (qkv + kPiece - 1) / kPiece * kPiece + sdpa_engine_bytes(b);
}

/// Bytes of the one block that kernels have on a GPU for these, at a multiple of 256: products,
/// norms, embedding and attention have it one after the other, on the stream that computes. It is
/// there from the first step to the last, whichever kernels are chosen.
///
/// \param capability  10 * major + minor of CUDA's
/// Of a model that is cut by tensor or context parallelism, for which there are no kernels yet,
/// what those of its parts would need.
std::int64_t gpu_workspace_bytes(const ModelSpec& model, const JobSpec& job, const Layout& layout,
                                 int capability);

}  // namespace shardwise
