#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/nccl/nccl_library.h"
#include "executor/device/cuda/cuda_device.h"
#include "executor/device/gpu_platform.h"

namespace shardwise::exec {

/// Libraries through which GPUs are used besides CUDA's runtime. Tests put fakes in their place.
struct CudaParts {
  /// \throws NcclError
  std::function<NcclLibrary()> nccl;
  /// Opens what compute() needs. \returns a line each that says what it is
  std::function<std::vector<std::string>()> open_kernels;
  /// The operations of a rank. \pre open_kernels()
  std::function<std::unique_ptr<Compute>(CudaDevice& device, int rank, const GpuOptions& options)>
      compute;
  /// Those the kernels are compiled for, as runs_on() takes them.
  std::string architectures;
};

/// NVIDIA's libraries as they are on this machine, and the kernels that this is linked with.
CudaParts cuda_parts();

}  // namespace shardwise::exec
