#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/kernels/attention/attention.h"
#include "executor/kernels/cudnn/cudnn_descriptor.h"
#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

enum class SdpaPass : std::uint8_t { forward, backward };

/// Work for cuDNN: attention of executor/kernels/attention/attention.h in bf16.
struct SdpaWork {
  AttentionShape shape;
  SdpaPass pass = SdpaPass::forward;
  /// Gradients of the queries as one product, not added up by blocks of keys in whatever order:
  /// equal inputs give equal bits, for a workspace of 2 batch heads sequence² bytes.
  bool deterministic = false;
};

/// Reason why cuDNN's graphs cannot state the work at all; null when they can. What a version of
/// cuDNN refuses on a GPU, SdpaEngines says.
std::optional<std::string> sdpa_unsupported(const AttentionShape& shape, DType dtype);

/// Names of a graph's tensors when it runs.
enum class SdpaTensor : std::uint8_t {
  queries = 1,
  keys,
  values,
  out,
  log_sums,
  d_out,
  d_queries,
  d_keys,
  d_values,
  row_sums,       // [batch, heads, sequence] fp32: out d_out, summed
  d_queries_sum,  // [batch, heads, sequence, head_dim] fp32: gradients of queries as they add up
  scale,          // numbers in the host's memory, fp32, from here on
  one,
  ahead,   // score of a key ahead of its query
  behind,  // score of a key behind the window
  window,
};

/// The attention of one shape as a graph of cuDNN's: products, scale, mask, softmax; in backward
/// the scores again from log_sums, as attention_backward does.
class SdpaGraph {
 public:
  /// \param handle  of the GPU it will run on; null where there is none
  /// \pre !sdpa_unsupported(work.shape, DType::bf16)
  SdpaGraph(const CudnnLibrary& library, const SdpaWork& work, cudnnHandle_t handle);

  cudnnBackendDescriptor_t handle() const { return graph_; }

 private:
  cudnnBackendDescriptor_t graph_ = nullptr;
  std::vector<CudnnDescriptor> made_;
};

}  // namespace shardwise::exec
