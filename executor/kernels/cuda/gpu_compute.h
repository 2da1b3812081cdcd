#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/kernels/cuda/cublaslt_library.h"
#include "executor/kernels/cuda/cuda_compute.h"

namespace shardwise::exec {

class CudnnLibrary;

/// Which kernels a GPU runs.
struct GpuComputeOptions {
  enum class Products : std::uint8_t {
    cublaslt,
    own,  // a kernel of ours: slow, and all that it does is in this repository
  };
  enum class Attention : std::uint8_t {
    measured,  // cuDNN or ours, whichever is faster for a shape; ours where cuDNN is not
    cudnn,     // cuDNN wherever it takes a work
    own,
  };
  Products products = Products::cublaslt;
  Attention attention = Attention::measured;
  bool tf32 = false;  // fp32 products may round their operands to TF32
  // Where what was timed is kept; empty: nowhere.
  std::string choices_folder = {};  // NOLINT(*-redundant-member-init): GCC asks for it
  double seconds_each = 2e-3;       // that each of the kernels that are compared is repeated for
  /// Equal inputs give equal bits, run after run: cuDNN's gradients in one order, and no kernel
  /// chosen by its time.
  bool deterministic = false;
};

/// Libraries of NVIDIA's that the options ask for, opened once a process.
struct GpuLibraries {
  std::shared_ptr<const CublasLtLibrary> cublaslt;  // null: not asked for
  std::shared_ptr<const CudnnLibrary> cudnn;        // null: not asked for, or not here
  std::string no_cudnn;                             // why it is not here

  /// \throws IoError that names where a library was looked for; of cuDNN only where it is told
  static GpuLibraries open(const GpuComputeOptions& options);
  /// Versions and files, and what is not here, a line each.
  std::vector<std::string> describe() const;
};

/// The kernels of one rank on its GPU, which is current on the calling thread. They run when they
/// are given their workspace. \param libraries  outlive them  \param rank  for messages
/// \throws CublasLtError, CudnnError, CudaError
std::unique_ptr<Compute> make_gpu_compute(const DeviceFacts& gpu, int rank,
                                          const GpuLibraries& libraries,
                                          const GpuComputeOptions& options);

}  // namespace shardwise::exec
