#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/machine/dtype.h"
#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

// Times of single kernels on an otherwise idle GPU whose clock is that of a long run. Launch
// latency is not included. docs/compute.md has every formula, its source and its error.

/// Time of C[m, n] = A[m, k] B[k, n] in `dtype` with fp32 accumulation. Never below flops / peak
/// nor bytes / bandwidth. Infinite when the GPU has no unit for `dtype`. \pre m, n, k >= 1
Seconds gemm_time(const GpuSpec& gpu, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                  GemmOutput output = GemmOutput::written);

/// Time of `groups` GEMMs of the same n, k and on average m rows each, in one kernel (routed
/// experts).
Seconds grouped_gemm_time(const GpuSpec& gpu, DType dtype, std::int64_t groups, double m,
                          std::int64_t n, std::int64_t k, GemmOutput output = GemmOutput::written);

/// Floating-point operations done (the causal or windowed part only). Backward is 2.5 x forward:
/// five matrix products for two (Dao, FlashAttention-2, section 3.1).
Flops attention_flops(const AttentionWork& work, Pass pass);

/// Fused attention. \pre dtype is bf16, fp16 or fp8
Seconds attention_time(const GpuSpec& gpu, DType dtype, const AttentionWork& work, Pass pass);

/// A kernel that only moves bytes: norms, activations, optimizer steps, copies. `moved` counts
/// reads and writes. Zero bytes take no time. Its kind, pass and type count where the GPU's file
/// has a rate for them. \param dtype  of weights and activations
Seconds memory_bound_time(const GpuSpec& gpu, Bytes moved, MoveKind kind = MoveKind::copy,
                          Pass pass = Pass::forward, DType dtype = DType::fp32);

/// Whether this product was among those that the curve of `gpu` was fitted to. A product of several
/// groups, or that adds to its result, is at best between them: tables time plain products.
GemmBasis gemm_basis(const GpuSpec& gpu, DType dtype, std::int64_t groups, std::int64_t m,
                     std::int64_t n, std::int64_t k, GemmOutput output = GemmOutput::written);

/// Account of how a time came about, for --explain.
struct ComputeExplanation {
  Seconds time;
  Seconds bound;  // peak or bandwidth limit
  std::vector<std::string> steps;
  std::vector<std::string> sources;
};
ComputeExplanation explain_gemm(const GpuSpec& gpu, DType dtype, std::int64_t m, std::int64_t n,
                                std::int64_t k, GemmOutput output = GemmOutput::written);

}  // namespace shardwise
