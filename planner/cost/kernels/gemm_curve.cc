#include "planner/cost/kernels/gemm_curve.h"

#include <algorithm>
#include <cmath>

namespace shardwise {
namespace {

// The tile that epilogue and split times are stated for.
constexpr double kReferenceTile = 128.0 * 256.0;
// A processor does not start on less depth than this when the depth is divided.
constexpr double kLeastDepth = 512;

double output_bytes(double input_bytes, GemmOutput output) {
  const double written = std::max(2.0, input_bytes);
  switch (output) {
    case GemmOutput::written:
      return written;
    case GemmOutput::sum:
      return 2 * written;
    case GemmOutput::fp32_sum:
      return 2 * 4.0;
  }
  return written;
}

/// What the source timed besides the product: its conversion to 8 bits.
double timed_besides(const MeasuredWith& with, const GemmLimits& limits, const GemmShape& shape) {
  const double operand = static_cast<double>(shape.m) * static_cast<double>(shape.k);
  return with.extra_start.value() + with.extra_moves * operand * limits.input_bytes / limits.bytes;
}

}  // namespace

GemmLimits gemm_limits(const GpuSpec& gpu, DType dtype, GemmOutput output) {
  GemmLimits limits;
  limits.flops = gpu.peak(dtype).value();
  limits.bytes = gpu.memory_bandwidth.value();
  limits.processors = gpu.sm_count;
  limits.input_bytes = bits_of(dtype) / 8.0;
  limits.output_bytes = output_bytes(limits.input_bytes, output);
  limits.packs = gpu.cores_per_rank > 0;
  return limits;
}

double overlapped(double a, double b) {
  const double more = std::max(a, b);
  if (more <= 0) return 0;
  const double ratio = std::min(a, b) / more;
  const double square = ratio * ratio;
  return more * std::sqrt(std::sqrt(1 + square * square));
}

GemmParts gemm_parts(const GemmCurve& curve, const GemmLimits& limits, const GemmShape& shape,
                     double speed) {
  const auto groups = static_cast<double>(shape.groups);
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  GemmParts parts;
  const double moved =
      groups * ((m * k + n * k) * limits.input_bytes + m * n * limits.output_bytes);
  const double packed = groups * n * k * limits.input_bytes;
  parts.memory = (limits.packs ? packed : moved) / (limits.bytes * curve.bandwidth_share);

  // Seconds that one processor needs for one multiply-add of the main loop.
  const double step = 2.0 * limits.processors / (limits.flops * curve.rate_share * speed);
  double best = HUGE_VAL;
  int index = 0;
  for (const GemmTile& tile : curve.tiles) {
    const std::int64_t count = ceil_div(shape.m, tile.rows) * ceil_div(shape.n, tile.columns);
    const auto area = static_cast<double>(tile.rows * tile.columns);
    const double loop = k * area * step / tile.rate_share;
    const double size = area / kReferenceTile;
    const double epilogue = curve.epilogue.value() * size;
    const double waves = groups * static_cast<double>(count) / limits.processors;

    const double paid = waves + curve.wave_rounding * (std::ceil(waves) - waves);
    const double whole = std::max(1.0, paid) * (loop + epilogue);
    const double share = std::max(waves, std::min(1.0, kLeastDepth / k));
    const double split = share * loop + waves * epilogue + curve.split.value() * size;
    if (whole < best) {
      best = whole;
      parts.tile = index;
      parts.split = false;
    }
    if (split < best) {
      best = split;
      parts.tile = index;
      parts.split = true;
    }
    ++index;
  }
  parts.arithmetic = best;
  parts.body = limits.packs ? std::max(parts.arithmetic + parts.memory, moved / limits.bytes)
                            : overlapped(parts.arithmetic, parts.memory);
  return parts;
}

double measured_gemm_seconds(const GemmCurve& curve, const GemmLimits& limits,
                             const GemmShape& shape) {
  const MeasuredWith& with = curve.measured_with;
  const double body = gemm_parts(curve, limits, shape, 1.0).body;
  double slowed = body;
  if (with.slowdown > 0)
    slowed += with.slowdown * body * body / (body + with.slowdown_time.value());
  return curve.start.value() + slowed + timed_besides(with, limits, shape);
}

double undisturbed_gemm_seconds(const GemmCurve& curve, const GemmLimits& limits,
                                const GemmShape& shape, double measured) {
  const MeasuredWith& with = curve.measured_with;
  const double start = curve.start.value();
  const double slowed = measured - start - timed_besides(with, limits, shape);
  // slowed = body + slowdown * body^2 / (body + time), solved for the body.
  const double time = with.slowdown_time.value();
  const double half = (slowed - time) / 2;
  const double root = std::sqrt(half * half + (1 + with.slowdown) * slowed * time);
  return slowed > 0 ? start + (half + root) / (1 + with.slowdown) : 0;
}

}  // namespace shardwise
