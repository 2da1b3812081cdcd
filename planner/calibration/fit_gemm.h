#pragma once

#include <string>
#include <vector>

#include "planner/calibration/measurements.h"
#include "planner/cost/kernels/gemm_curve.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// Fits the curve of one dtype to half of the points and judges it on the other half.
///
/// The tiles are chosen from a list by forward selection: up to three, each of which must lower
/// the loss by 1 %. Points of 8-bit dtypes are taken to include the conversion of the first operand
/// (their source converts it); that part is fitted and kept apart, and the start of a kernel is
/// that of the bf16 curve of `gpu`. Of a CPU that ranks share the tiles are smaller, and points are
/// taken to be timed at the speed of training.
///
/// \param points     of `dtype`; at least 40
/// \param fitted_on  data set and commit, kept with the curve
GemmCurve fit_gemm(const GpuSpec& gpu, DType dtype, const std::vector<GemmPoint>& points,
                   const std::string& fitted_on);

/// Speed of arithmetic in long runs, of that of the curve: so that the curve's prediction of these
/// points is right in the median. At most 1.
/// \param points      measured in long runs on random data
/// \param held_ratio  best rate that `gpu` holds in long runs over that of the GPU of `points`,
///                    where that is another one of the same chip
double sustained_share(const GpuSpec& gpu, const GemmCurve& curve,
                       const std::vector<GemmPoint>& points, double held_ratio = 1);

/// Share from `held`, the best rate over all shapes that was held in a long run: of the best
/// rate among the points that the curve was fitted to, as they would be without the slowdown of
/// long kernels and without their conversion, both of which the curve leaves out as well. Best is
/// compared with best because the curve, made right in the median, lies below both.
/// \param points  of the curve's dtype; empty where nothing was measured: then the best rate is
///                that of the curve over m, n, k of 1024, 2048 … 16384
double sustained_share(const GpuSpec& gpu, const GemmCurve& curve,
                       const std::vector<GemmPoint>& points, FlopsPerSecond held);

/// Share from the curve's own points: the slowdown of a kernel of 10 ms.
double sustained_share(const GemmCurve& curve);

/// Fits what grouped GEMMs lose against the curve of `dtype` (whose long-run speed it uses).
/// \param points  at least 8
GroupedGemmCurve fit_grouped_gemm(const GpuSpec& gpu, DType dtype,
                                  const std::vector<GemmPoint>& points,
                                  const std::string& fitted_on);

}  // namespace shardwise
