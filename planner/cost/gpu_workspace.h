#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "planner/cost/gemm_workspace.h"

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

// What our kernels need on a GPU besides what a layer hands them. The executor's kernels ask the
// same functions.

/// Sums over `rows` that a norm's backward makes side by side before they are added up: enough to
/// give each multiprocessor some, of 4 rows at least, a multiple of 8.
constexpr std::int64_t norm_backward_parts(std::int64_t rows) {
  constexpr std::int64_t kMost = 512;
  constexpr std::int64_t kRowsAPart = 4;
  constexpr std::int64_t kMultiple = 8;
  const std::int64_t wanted = std::min(kMost, (rows + kRowsAPart - 1) / kRowsAPart);
  return (wanted + kMultiple - 1) / kMultiple * kMultiple;
}

/// The fp32 sums of both gradients of a norm's parameters, for `rows` runs of `width` elements.
constexpr std::int64_t norm_backward_workspace(std::int64_t rows, std::int64_t width) {
  return 2 * norm_backward_parts(rows) * width * 4;
}

/// The rows of a micro-batch sorted by token, and their tokens.
constexpr std::int64_t embedding_backward_workspace(std::int64_t tokens) { return 2 * tokens * 4; }

/// Heads of attention on one rank.
struct AttentionHeads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// What an engine of cuDNN may need in the backward of bf16 attention besides our own workspace.
///
/// The queries' gradients in fp32 once more where its kernels of sm_80 run; gradients of keys and
/// values of every query's head where heads are grouped. \param capability  10 * major + minor
/// Source: what cuDNN 9.19 says of its engines (tests/executor/cudnn).
constexpr std::int64_t sdpa_engine_bytes(std::int64_t tokens, const AttentionHeads& a,
                                         int capability) {
  constexpr std::int64_t kPiece = 256;
  const std::int64_t elements = tokens * a.heads * a.head_dim;
  const bool own_kernels = capability / 10 == 9 || capability / 10 == 10;
  return elements * ((own_kernels ? 0 : 4) + (a.heads > a.kv_heads ? 4 : 0)) + kPiece;
}

/// With the gradients of queries, keys and values, which it does not put in their places.
constexpr std::int64_t sdpa_backward_workspace(std::int64_t tokens, const AttentionHeads& a,
                                               int capability) {
  constexpr std::int64_t kPiece = 256;
  const std::int64_t qkv = tokens * (a.heads + 2 * a.kv_heads) * a.head_dim * 2;
  return (qkv + kPiece - 1) / kPiece * kPiece + sdpa_engine_bytes(tokens, a, capability);
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
