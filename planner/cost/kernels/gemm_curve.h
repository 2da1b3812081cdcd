#pragma once

#include <cstdint>

#include "planner/cost/kernels/compute.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// `groups` products [m, k] x [k, n] in one kernel.
struct GemmShape {
  std::int64_t groups = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};

/// Limits of a GPU for a kernel; rates per second.
struct GemmLimits {
  double flops = 0;
  double bytes = 0;
  double processors = 1;
  double input_bytes = 2;   // of an element of the operands
  double output_bytes = 2;  // moved for an element of the result
  bool packs = false;       // a processor, which copies its second operand before it multiplies
};

GemmLimits gemm_limits(const GpuSpec& gpu, DType dtype, GemmOutput output);

/// One evaluation of a GEMM curve, in seconds.
struct GemmParts {
  double arithmetic = 0;  // of the best tile
  double memory = 0;      // to move the operands and the result once; of a processor, to pack
  double body = 0;        // both, overlapped; of a processor one after the other
  int tile = 0;           // index into GemmCurve::tiles
  bool split = false;     // the depth is divided among processors
};

/// The body of one kernel, its start apart. Arithmetic runs at `speed` of the curve's rate. Never
/// below flops / (limits.flops * speed) nor below the bytes moved / limits.bytes.
/// Source: docs/compute.md, GEMM.
GemmParts gemm_parts(const GemmCurve& curve, const GemmLimits& limits, const GemmShape& shape,
                     double speed);

/// The time that the source of the curve would have measured: short, with what else it timed.
double measured_gemm_seconds(const GemmCurve& curve, const GemmLimits& limits,
                             const GemmShape& shape);

/// The inverse: of a time that the source measured, what is left without the slowdown of its long
/// kernels and without what else it timed. At most 0 when that was all of it.
double undisturbed_gemm_seconds(const GemmCurve& curve, const GemmLimits& limits,
                                const GemmShape& shape, double measured);

/// The larger plus what the smaller adds when the two overlap well but not perfectly: the 4-norm.
double overlapped(double a, double b);

}  // namespace shardwise
