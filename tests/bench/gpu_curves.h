#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/cuda/cublaslt_library.h"

namespace shardwise::exec {

/// y = x W^T in bf16 over `m` tokens, from `k` features to `n`.
struct GemmTime {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double seconds = 0;
};

struct CurveOptions {
  std::int64_t least_rows = 1024;
  std::int64_t most_rows = 32768;
  std::vector<std::int64_t> widths = {768, 1024, 1600, 2048, 2304, 3072, 4096, 6400, 8192, 16384};
  double seconds_each = 0.01;
  double sustained_seconds = 3;  // of one product of 8192 cubed, or of the largest size
  std::int64_t most_bytes = std::int64_t{1} << 30;  // of a move
};

/// What `shardwise fit --gpu` fits the curves of a GPU to.
struct GpuCurves {
  std::vector<GemmTime> gemms;
  double sustained_tflops = 0;
  std::vector<std::pair<std::int64_t, double>> moves;  // bytes read and written, seconds
};

/// Times products of all rows, widths and widths, and copies, on a GPU that nothing else uses.
/// \throws CudaError, CublasLtError
GpuCurves measure_curves(CudaDevice& device, const CublasLtLibrary& library,
                         const CurveOptions& options);

/// The table of `shardwise fit --gemm`.
std::string gemm_csv(const GpuCurves& curves);
/// The table of `shardwise fit --memory-bound`, which is of casts of [m, k] from bf16 to 8 bits: a
/// row for each copy, of the cast that moves as many bytes.
std::string moves_csv(const GpuCurves& curves);

}  // namespace shardwise::exec
