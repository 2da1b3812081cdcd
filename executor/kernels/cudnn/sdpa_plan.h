#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/kernels/cudnn/sdpa_engines.h"

namespace shardwise::exec {

/// Where the parts of a workspace are, in bytes from its beginning; each at a multiple of 256.
///
/// cuDNN reads queries, keys and values until its last kernel and lets no input be an output, so
/// that the gradients of backward have memory of their own: [batch, sequence, qkv_width] bf16 at
/// `d_qkv`. What attention_backward promises, gradients in place of qkv, is one copy more.
struct SdpaWorkspace {
  std::int64_t d_qkv = 0;
  std::int64_t engine = 0;
  std::int64_t bytes = 0;  // of all
};

/// \param engine_bytes  SdpaEngine::workspace_bytes, which needs no GPU
SdpaWorkspace sdpa_workspace(const SdpaWork& work, std::int64_t engine_bytes);

/// Memory of the device, at addresses that 16 divides; no two overlap.
struct SdpaOperands {
  const std::byte* qkv = nullptr;
  std::byte* out = nullptr;          // read in backward
  float* log_sums = nullptr;         // read in backward
  const std::byte* d_out = nullptr;  // backward
  /// Backward: attention_backward_bytes(shape), gradients of the queries as they add up and a
  /// number a row and head, as our own kernels have them.
  std::byte* sums = nullptr;
  std::byte* workspace = nullptr;  // plan.workspace().bytes
};

/// An engine made ready for its GPU: its program is compiled and loaded, which takes about a
/// second. Made once a work, run any number of times.
class SdpaPlan {
 public:
  /// \param engine  index of engines.engines()  \param handle  of the GPU they were asked for
  /// \throws CudnnError  where the GPU refuses it after all
  SdpaPlan(const CudnnLibrary& library, const SdpaEngines& engines, std::size_t engine,
           cudnnHandle_t handle);

  const SdpaWorkspace& workspace() const { return workspace_; }

  /// Issues it to the handle's stream. Gradients are then at workspace + workspace().d_qkv.
  void run(const SdpaOperands& operands, cudnnHandle_t handle) const;

 private:
  const CudnnLibrary& library_;
  SdpaWork work_;
  CudnnDescriptor plan_;
  SdpaWorkspace workspace_;
};

}  // namespace shardwise::exec
