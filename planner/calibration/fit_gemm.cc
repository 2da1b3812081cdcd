#include "planner/calibration/fit_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "planner/calibration/fit_quality.h"
#include "planner/calibration/robust_fit.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr double kScale = 0.05;     // residuals beyond it count less
constexpr double kAnchor = 0.0003;  // holds what no point speaks of
constexpr std::size_t kMostTiles = 3;
// A further tile must lower the loss to this share.
constexpr double kWorthATile = 0.99;
// Tiles of CUTLASS kernels of the three generations, both ways round.
constexpr std::pair<std::int64_t, std::int64_t> kTiles[] = {
    {128, 256}, {256, 128}, {128, 128}, {64, 128},  {128, 64},  {64, 256},  {256, 64},
    {192, 128}, {128, 192}, {160, 128}, {128, 160}, {256, 192}, {192, 256}, {256, 256}};
// Blocks of a CPU's library, down to those of its registers.
constexpr std::pair<std::int64_t, std::int64_t> kProcessorTiles[] = {
    {16, 16}, {64, 16}, {16, 64}, {64, 64}, {128, 128}, {256, 256}, {512, 512}};

GemmShape shape_of(const GemmPoint& point) { return {point.groups, point.m, point.n, point.k}; }

/// The points in a form that is quick to evaluate: `limits` by output.
struct Sample {
  GemmShape shape;
  GemmLimits limits;
  double seconds = 0;
};

std::vector<Sample> samples_of(const GpuSpec& gpu, DType dtype,
                               const std::vector<GemmPoint>& points, bool wanted_left_out) {
  std::vector<Sample> samples;
  for (const GemmPoint& point : points) {
    const auto output = static_cast<std::int64_t>(point.output);
    if (left_out({point.groups, point.m, point.n, point.k, output}) != wanted_left_out) continue;
    samples.push_back({shape_of(point), gemm_limits(gpu, dtype, point.output), point.time.value()});
  }
  return samples;
}

// The order of the parameters: these, then the rate share of each tile but the first.
enum GemmParameter : std::size_t {
  kGemmStart,
  kGemmRateShare,
  kGemmEpilogue,
  kGemmWaveRounding,
  kGemmSplit,
  kGemmBandwidthShare,
  kGemmSlowdown,
  kGemmSlowdownTime,
  kGemmExtraMoves,
};

/// The source converts operands of this dtype in the time it measures.
bool converts(const GemmCurve& curve) { return bits_of(curve.dtype) <= 8; }

/// What is looked for, from where and between which bounds.
FitProblem gemm_fit_problem(const GemmCurve& curve, bool processor) {
  FitProblem problem;
  const auto add = [&](double low, double start, double high) {
    problem.low.push_back(low);
    problem.start.push_back(start);
    problem.high.push_back(high);
  };
  add(1e-7, 2.5e-6, 5e-5);  // kGemmStart, of the conversion for 8-bit dtypes
  add(0.2, 0.85, 1);        // kGemmRateShare
  add(1e-8, 2e-6, 2e-5);    // kGemmEpilogue
  add(0.01, 0.5, 1);        // kGemmWaveRounding
  add(1e-7, 1e-5, 1e-3);    // kGemmSplit
  add(0.3, 0.75, 1);        // kGemmBandwidthShare
  add(1e-3, 0.1, 3);        // kGemmSlowdown
  add(2e-4, 2e-3, 1e-1);    // kGemmSlowdownTime
  if (processor) {
    // Its library writes results to memory, divides no depth, and is timed at its usual speed.
    problem.high[kGemmStart] = problem.high[kGemmEpilogue] = 1e-3;
    problem.low[kGemmSplit] = problem.start[kGemmSplit] = problem.high[kGemmSplit] = 0.1;
    problem.low[kGemmBandwidthShare] = 0.01;
    problem.low[kGemmSlowdown] = problem.start[kGemmSlowdown] = problem.high[kGemmSlowdown] = 1e-9;
  }
  // Quantising to 8 bits reads the operand once or twice and writes it: counted in operands.
  if (converts(curve)) add(0.1, 4, 40);  // kGemmExtraMoves
  for (std::size_t i = 1; i < curve.tiles.size(); ++i) add(0.4, 0.9, 1);
  return problem;
}

void set_gemm_parameters(GemmCurve& curve, const std::vector<double>& values) {
  (converts(curve) ? curve.measured_with.extra_start : curve.start) = Seconds(values[kGemmStart]);
  curve.rate_share = values[kGemmRateShare];
  curve.epilogue = Seconds(values[kGemmEpilogue]);
  curve.wave_rounding = values[kGemmWaveRounding];
  curve.split = Seconds(values[kGemmSplit]);
  curve.bandwidth_share = values[kGemmBandwidthShare];
  curve.measured_with.slowdown = values[kGemmSlowdown];
  curve.measured_with.slowdown_time = Seconds(values[kGemmSlowdownTime]);
  std::size_t next = kGemmExtraMoves;
  if (converts(curve)) curve.measured_with.extra_moves = values[next++];
  for (std::size_t i = 1; i < curve.tiles.size(); ++i) curve.tiles[i].rate_share = values[next++];
}

struct FittedTiles {
  GemmCurve curve;
  double cost = 0;
};

FittedTiles fit_tiles(GemmCurve curve, bool processor, const std::vector<Sample>& samples,
                      const FitOptions& options) {
  FitProblem problem = gemm_fit_problem(curve, processor);
  problem.points = samples.size();
  problem.residuals = [&](const std::vector<double>& values, std::vector<double>& out) {
    GemmCurve tried = curve;
    set_gemm_parameters(tried, values);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& each = samples[i];
      out[i] = std::log(measured_gemm_seconds(tried, each.limits, each.shape) / each.seconds);
    }
  };
  const std::vector<double> values = robust_fit(problem, options);
  std::vector<double> residuals(problem.points);
  problem.residuals(values, residuals);
  double loss = 0;
  for (const double r : residuals) loss += std::hypot(1.0, r / options.scale) - 1;
  set_gemm_parameters(curve, values);
  return {std::move(curve), loss};
}

FittedTiles select_tiles(const GpuSpec& gpu, DType dtype, const std::vector<Sample>& samples) {
  const FitOptions quick{kScale, kAnchor, 1, 25};
  FittedTiles best;
  best.curve.dtype = dtype;
  const GemmCurve* wide = gpu.gemm_curve(DType::bf16);
  if (converts(best.curve) && wide != nullptr) best.curve.start = wide->start;
  best.cost = HUGE_VAL;
  const bool processor = gpu.cores_per_rank > 0;
  using Tiles = std::span<const std::pair<std::int64_t, std::int64_t>>;
  const Tiles tiles = processor ? Tiles(kProcessorTiles) : Tiles(kTiles);
  while (best.curve.tiles.size() < kMostTiles) {
    FittedTiles better;
    better.cost = HUGE_VAL;
    for (const auto& [rows, columns] : tiles) {
      GemmCurve curve = best.curve;
      curve.tiles.push_back({rows, columns, 1.0});
      FittedTiles tried = fit_tiles(std::move(curve), processor, samples, quick);
      if (tried.cost < better.cost) better = std::move(tried);
    }
    if (better.cost > kWorthATile * best.cost) break;
    best = std::move(better);
  }
  return fit_tiles(std::move(best.curve), processor, samples, {kScale, kAnchor, 8, 100});
}

/// The best tile has share 1, coefficients have few digits.
void tidy_gemm_curve(GemmCurve& curve) {
  double most = 0;
  for (const GemmTile& tile : curve.tiles) most = std::max(most, tile.rate_share);
  curve.rate_share = rounded_coefficient(std::min(1.0, curve.rate_share * most));
  for (GemmTile& tile : curve.tiles) tile.rate_share = rounded_coefficient(tile.rate_share / most);
  const auto rounded_us = [](Seconds time) {
    return Seconds(rounded_coefficient(time.value() * 1e6) * 1e-6);
  };
  curve.start = rounded_us(curve.start);
  curve.epilogue = rounded_us(curve.epilogue);
  curve.wave_rounding = rounded_coefficient(curve.wave_rounding);
  curve.split = rounded_us(curve.split);
  curve.bandwidth_share = rounded_coefficient(curve.bandwidth_share);
  MeasuredWith& with = curve.measured_with;
  with.slowdown = rounded_coefficient(with.slowdown);
  with.slowdown_time = rounded_us(with.slowdown_time);
  with.extra_moves = rounded_coefficient(with.extra_moves);
  with.extra_start = rounded_us(with.extra_start);
}

double shape_flops(const GemmShape& shape) {
  return 2.0 * static_cast<double>(shape.groups) * static_cast<double>(shape.m) *
         static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

/// Of the points, freed of what disturbs the measurement where that is a small part of it.
double best_rate(const GpuSpec& gpu, const GemmCurve& curve, const std::vector<GemmPoint>& points) {
  constexpr double kLeastOwn = 0.9;  // of what was timed
  double best = 0;
  for (const GemmPoint& point : points) {
    const GemmLimits limits = gemm_limits(gpu, curve.dtype, point.output);
    const GemmShape shape = shape_of(point);
    const double timed = point.time.value();
    const double own = undisturbed_gemm_seconds(curve, limits, shape, timed);
    if (own >= kLeastOwn * timed) best = std::max(best, shape_flops(shape) / own);
  }
  return best;
}

double best_rate_of_curve(const GpuSpec& gpu, const GemmCurve& curve) {
  const GemmLimits limits = gemm_limits(gpu, curve.dtype, GemmOutput::written);
  double best = 0;
  for (std::int64_t m = 1024; m <= 16384; m += 1024) {
    for (std::int64_t n = 1024; n <= 16384; n += 1024) {
      for (std::int64_t k = 1024; k <= 16384; k += 1024) {
        const GemmShape shape{1, m, n, k};
        const GemmParts parts = gemm_parts(curve, limits, shape, 1.0);
        best = std::max(best, shape_flops(shape) / (curve.start.value() + parts.body));
      }
    }
  }
  return best;
}

/// The shapes of plain products among the points, in few blocks: the n and k that were measured
/// with the same m, then of those the n with the same k.
std::vector<MeasuredShapes> shapes_of(const std::vector<GemmPoint>& points) {
  using Sizes = std::set<std::int64_t>;
  std::map<std::pair<std::int64_t, std::int64_t>, Sizes> rows_of;
  for (const GemmPoint& point : points) {
    if (point.output == GemmOutput::written) rows_of[{point.n, point.k}].insert(point.m);
  }
  std::map<Sizes, std::map<std::int64_t, Sizes>> depths_of;
  for (const auto& [weight, rows] : rows_of) depths_of[rows][weight.first].insert(weight.second);
  std::vector<MeasuredShapes> shapes;
  for (const auto& [rows, weights] : depths_of) {
    std::map<Sizes, std::vector<std::int64_t>> columns_of;
    for (const auto& [columns, depths] : weights) columns_of[depths].push_back(columns);
    for (const auto& [depths, columns] : columns_of) {
      shapes.push_back({{rows.begin(), rows.end()}, columns, {depths.begin(), depths.end()}});
    }
  }
  return shapes;
}

}  // namespace

GemmCurve fit_gemm(const GpuSpec& gpu, DType dtype, const std::vector<GemmPoint>& points,
                   const std::string& fitted_on) {
  SHARDWISE_CHECK(points.size() >= 40, std::to_string(points.size()));
  GemmCurve curve = select_tiles(gpu, dtype, samples_of(gpu, dtype, points, false)).curve;
  tidy_gemm_curve(curve);
  if (gpu.cores_per_rank > 0) curve.measured_with = {};
  std::vector<double> errors;
  for (const Sample& each : samples_of(gpu, dtype, points, true)) {
    const double predicted = measured_gemm_seconds(curve, each.limits, each.shape);
    errors.push_back(std::abs(predicted / each.seconds - 1));
  }
  curve.shapes = shapes_of(points);
  curve.fit = fit_record(fitted_on,
                         "robust least squares on log time over half of the shapes, tiles by "
                         "forward selection",
                         points.size(), std::move(errors));
  return curve;
}

double sustained_share(const GpuSpec& gpu, const GemmCurve& curve,
                       const std::vector<GemmPoint>& points, double held_ratio) {
  std::vector<double> shares;
  for (const GemmPoint& point : points) {
    const GemmLimits limits = gemm_limits(gpu, curve.dtype, point.output);
    const GemmParts parts = gemm_parts(curve, limits, shape_of(point), 1.0);
    shares.push_back((curve.start.value() + parts.body) / point.time.value());
  }
  return rounded_coefficient(std::min(1.0, held_ratio * summarise(std::move(shares)).median));
}

double sustained_share(const GpuSpec& gpu, const GemmCurve& curve,
                       const std::vector<GemmPoint>& points, FlopsPerSecond held) {
  const double best =
      points.empty() ? best_rate_of_curve(gpu, curve) : best_rate(gpu, curve, points);
  return rounded_coefficient(std::min(1.0, held.value() / best));
}

double sustained_share(const GemmCurve& curve) {
  constexpr double kLong = 10e-3;
  const MeasuredWith& with = curve.measured_with;
  const double slowdown = with.slowdown * kLong / (kLong + with.slowdown_time.value());
  return rounded_coefficient(1 / (1 + slowdown));
}

GroupedGemmCurve fit_grouped_gemm(const GpuSpec& gpu, DType dtype,
                                  const std::vector<GemmPoint>& points,
                                  const std::string& fitted_on) {
  SHARDWISE_CHECK(points.size() >= 8, std::to_string(points.size()));
  const GemmCurve* curve = gpu.gemm_curve(dtype);
  SHARDWISE_CHECK(curve != nullptr, gpu.name);
  const auto seconds = [&](const GroupedGemmCurve& grouped, const Sample& each) {
    const double speed = curve->sustained_share * grouped.rate_share;
    return curve->start.value() + grouped.group.value() * static_cast<double>(each.shape.groups) +
           gemm_parts(*curve, each.limits, each.shape, speed).body;
  };
  const std::vector<Sample> samples = samples_of(gpu, dtype, points, false);
  FitProblem problem{{0.8, 1e-6}, {0.2, 1e-8}, {1, 1e-4}, {}, samples.size()};
  problem.residuals = [&](const std::vector<double>& values, std::vector<double>& out) {
    GroupedGemmCurve grouped;
    grouped.rate_share = values[0];
    grouped.group = Seconds(values[1]);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      out[i] = std::log(seconds(grouped, samples[i]) / samples[i].seconds);
    }
  };
  const std::vector<double> values = robust_fit(problem, {0.1, kAnchor, 4, 100});
  GroupedGemmCurve grouped;
  grouped.rate_share = rounded_coefficient(values[0]);
  grouped.group = Seconds(rounded_coefficient(values[1] * 1e6) * 1e-6);
  std::vector<double> errors;
  for (const Sample& each : samples_of(gpu, dtype, points, true)) {
    errors.push_back(std::abs(seconds(grouped, each) / each.seconds - 1));
  }
  grouped.fit = fit_record(fitted_on, "robust least squares on log time over half of the shapes",
                           points.size(), std::move(errors));
  return grouped;
}

}  // namespace shardwise
