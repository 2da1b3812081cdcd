#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/cuda/cublaslt_library.h"
#include "tests/bench/attention_clock.h"

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
  // Heads of GPT-2 124M and 1.5B and of Llama-3.2 1B and 3B, one sequence, of any
  // length, and over sequences. `fit` leaves out those below 1024.
  std::vector<AttentionShape> heads = {
      {1, 0, 12, 12, 64}, {1, 0, 25, 25, 64}, {1, 0, 32, 8, 64}, {1, 0, 24, 8, 128}};
  std::vector<std::int64_t> sequences = {1024, 2048, 4096, 8192, 16384, 32768};
  std::int64_t most_tokens = 32768;  // of a call of attention
};

/// Measurements to which `shardwise fit --gpu` fits the curves of a GPU.
struct GpuCurves {
  std::vector<GemmTime> gemms;
  double sustained_tflops = 0;
  std::vector<std::pair<std::int64_t, double>> moves;  // bytes read and written, seconds
  std::vector<AttentionTime> attention;
};

/// Times products of all rows, widths and widths, copies, and attention of all heads and sequences,
/// in one and in several, on a GPU that nothing else uses.
/// \param compute  of the device, for attention \throws CudaError, CublasLtError, CudnnError
GpuCurves measure_curves(CudaDevice& device, const CublasLtLibrary& library, Compute& compute,
                         const CurveOptions& options);

/// The table of `shardwise fit --gemm`.
std::string gemm_csv(const GpuCurves& curves);
/// The table of `shardwise fit --memory-bound`, which is of casts of [m, k] from bf16 to 8 bits: a
/// row for each copy, of the cast that moves as many bytes.
std::string moves_csv(const GpuCurves& curves);
/// The table of `shardwise fit --attention`, of training: both passes of a shape in a row.
std::string attention_csv(const GpuCurves& curves);

}  // namespace shardwise::exec
