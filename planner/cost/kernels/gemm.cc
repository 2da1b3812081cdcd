#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/cost/kernels/compute.h"
#include "planner/cost/kernels/gemm_curve.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// The slower of arithmetic at peak and of moving each matrix once.
double bound_seconds(const GemmLimits& limits, const GemmShape& shape) {
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const double moved = (m * k + n * k) * limits.input_bytes + m * n * limits.output_bytes;
  return static_cast<double>(shape.groups) *
         std::max(2.0 * m * n * k / limits.flops, moved / limits.bytes);
}

}  // namespace

Seconds gemm_time(const GpuSpec& gpu, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                  GemmOutput output) {
  const GemmLimits limits = gemm_limits(gpu, dtype, output);
  const GemmShape shape{1, m, n, k};
  if (limits.flops <= 0) return Seconds(HUGE_VAL);
  const GemmCurve* curve = gpu.gemm_curve(dtype);
  if (curve == nullptr) return Seconds(bound_seconds(limits, shape));
  return curve->start + Seconds(gemm_parts(*curve, limits, shape, curve->sustained_share).body);
}

Seconds grouped_gemm_time(const GpuSpec& gpu, DType dtype, std::int64_t groups, double m,
                          std::int64_t n, std::int64_t k, GemmOutput output) {
  const GemmLimits limits = gemm_limits(gpu, dtype, output);
  const GemmShape shape{groups, std::max<std::int64_t>(1, std::llround(m)), n, k};
  if (limits.flops <= 0) return Seconds(HUGE_VAL);
  const GemmCurve* curve = gpu.gemm_curve(dtype);
  if (curve == nullptr) return Seconds(bound_seconds(limits, shape));
  const double speed = curve->sustained_share * gpu.grouped_gemm.rate_share;
  return curve->start + gpu.grouped_gemm.group * static_cast<double>(groups) +
         Seconds(gemm_parts(*curve, limits, shape, speed).body);
}

GemmBasis gemm_basis(const GpuSpec& gpu, DType dtype, std::int64_t groups, std::int64_t m,
                     std::int64_t n, std::int64_t k, GemmOutput output) {
  const GemmCurve* curve = gpu.gemm_curve(dtype);
  const bool timed = curve != nullptr && curve->fit.measured && curve->dtype == dtype &&
                     (groups == 1 || gpu.grouped_gemm.fit.measured);
  if (!timed || !curve->surrounds(m, n, k)) return GemmBasis::extrapolated;
  const bool plain = groups == 1 && output == GemmOutput::written;
  return plain && curve->measured(m, n, k) ? GemmBasis::measured : GemmBasis::interpolated;
}

ComputeExplanation explain_gemm(const GpuSpec& gpu, DType dtype, std::int64_t m, std::int64_t n,
                                std::int64_t k, GemmOutput output) {
  ComputeExplanation result;
  const GemmLimits limits = gemm_limits(gpu, dtype, output);
  const GemmShape shape{1, m, n, k};
  result.time = gemm_time(gpu, dtype, m, n, k, output);
  result.bound = Seconds(limits.flops > 0 ? bound_seconds(limits, shape) : HUGE_VAL);
  const Flops work(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  result.steps.push_back(
      fmt::format("[{}, {}] x [{}, {}] in {}: {}", m, k, k, n, name_of(dtype), format_flops(work)));
  if (limits.flops <= 0) {
    result.steps.push_back(fmt::format("{} has no unit for {}", gpu.name, name_of(dtype)));
    return result;
  }
  const GemmCurve* curve = gpu.gemm_curve(dtype);
  if (curve == nullptr) {
    result.steps.push_back(fmt::format("{} has no GEMM curve: the bound is taken", gpu.name));
    return result;
  }
  const GemmParts parts = gemm_parts(*curve, limits, shape, curve->sustained_share);
  const GemmTile& tile = curve->tiles[static_cast<std::size_t>(parts.tile)];
  const std::int64_t tiles = ceil_div(m, tile.rows) * ceil_div(n, tile.columns);
  result.steps.push_back(fmt::format(
      "{} tiles of {} x {} on {} processors, {}: {}", tiles, tile.rows, tile.columns, gpu.sm_count,
      parts.split ? "depth divided" : "wave by wave", format_seconds(Seconds(parts.arithmetic))));
  result.steps.push_back(
      fmt::format("operands and result moved once: {}", format_seconds(Seconds(parts.memory))));
  result.steps.push_back(
      fmt::format("start {} + both overlapped {} = {}, where peak and bandwidth allow {} ({})",
                  format_seconds(curve->start), format_seconds(Seconds(parts.body)),
                  format_seconds(result.time), format_seconds(result.bound),
                  format_percent(result.bound / result.time)));
  result.sources.push_back(curve->fit.fitted_on.empty() ? curve->fit.method : curve->fit.fitted_on);
  if (curve->sustained_share < 1) {
    result.steps.push_back(fmt::format("arithmetic at {} of the speed of the short measurement",
                                       format_percent(curve->sustained_share)));
    result.sources.push_back(curve->sustained_source);
  }
  return result;
}

}  // namespace shardwise
