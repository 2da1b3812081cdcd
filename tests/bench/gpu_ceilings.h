#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/cuda/cublaslt_library.h"
#include "planner/spec/machine/dtype.h"
#include "tests/bench/attention_clock.h"

namespace shardwise::exec {

/// How memory is moved: within the device, written, or between it and pinned memory of the host.
enum class Move : std::uint8_t { copy, fill, to_device, to_host };

/// One size moved.
struct MoveCeiling {
  Move move = Move::copy;
  std::int64_t bytes = 0;    // of what is moved
  double seconds = 0;        // median
  double gb_per_s = 0;       // bytes read and written on the device, 1 GB = 1e9
  std::int64_t repeats = 0;  // that the median is of
};

/// Result of a product of a layer with a weight [out, in] over `rows` tokens.
enum class ProductKind : std::uint8_t {
  forward,          // y = x W^T
  weight_gradient,  // d_W += d_y^T x, fp32
  narrow_gradient,  // the same, bf16
};

/// One product, by the fastest of the algorithms that cuBLASLt's heuristics offer.
struct ProductCeiling {
  ProductKind kind = ProductKind::forward;
  DType dtype = DType::bf16;
  bool tf32 = false;
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  double seconds = 0;  // median; 0: cuBLASLt has no algorithm, or memory does not suffice
  double tflops = 0;   // 2 rows in out a second
  std::int64_t repeats = 0;
};

struct GpuCeilings {
  DeviceFacts facts;
  std::string cublaslt;  // version and file
  std::vector<MoveCeiling> moves;
  std::vector<ProductCeiling> products;
  std::vector<AttentionTime> attention;
};

struct CeilingOptions {
  std::int64_t largest_bytes = std::int64_t{1} << 30;  // of a move
  double seconds_each = 0.2;                           // that a move or product is repeated for
  std::int64_t largest_rows = 32768;                   // products of more are left out
  std::int64_t largest_sequence = 8192;                // attention over more is left out
};

/// Times moves, products and attention on a GPU that nothing else uses, of random numbers.
/// \param compute  of the device, for attention \throws CudaError, CublasLtError, CudnnError
GpuCeilings measure_ceilings(CudaDevice& device, const CublasLtLibrary& library, Compute& compute,
                             const CeilingOptions& options);

/// "shardwise.gpu_ceilings/1".
std::string to_json(const GpuCeilings& ceilings);

}  // namespace shardwise::exec
