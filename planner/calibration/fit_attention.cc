#include "planner/calibration/fit_attention.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/calibration/fit_quality.h"
#include "planner/calibration/robust_fit.h"
#include "planner/cost/kernels/attention_curve.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr const char* kMethod = "robust least squares on log time over half of the shapes";

std::int64_t mean_head_dim(const AttentionWork& work) {
  return (work.qk_head_dim + work.v_head_dim) / 2;
}

std::vector<AttentionPoint> half_of(const std::vector<AttentionPoint>& points, Pass pass,
                                    bool wanted_left_out) {
  std::vector<AttentionPoint> half;
  for (const AttentionPoint& point : points) {
    const AttentionWork& w = point.work;
    if (point.pass != pass) continue;
    const bool out = left_out({w.batch, w.heads, w.kv_heads, w.seq_q, w.seq_kv, w.qk_head_dim,
                               w.v_head_dim, w.window, w.causal ? 1 : 0});
    if (out == wanted_left_out) half.push_back(point);
  }
  return half;
}

double measured_seconds(const AttentionCurve& curve, const AttentionLimits& limits,
                        const AttentionPoint& point) {
  return point.copies_kv ? measured_attention_seconds(curve, limits, point.work, point.pass)
                         : attention_seconds(curve, limits, point.work, point.pass);
}

// The order of the parameters: these, then the rate of each head dimension.
enum AttentionParameter : std::size_t {
  kAttentionStart,
  kAttentionBlock,
  kAttentionTailShare,
  kAttentionBandwidthShare,
  kAttentionExtraMoves,
  kAttentionRates
};

void set_attention_parameters(AttentionCurve& curve, const std::vector<double>& values) {
  curve.start = Seconds(values[kAttentionStart]);
  curve.block = Seconds(values[kAttentionBlock]);
  curve.tail_share = values[kAttentionTailShare];
  curve.bandwidth_share = values[kAttentionBandwidthShare];
  curve.measured_with.extra_moves = values[kAttentionExtraMoves];
  for (std::size_t i = 0; i < curve.rates.size(); ++i) {
    curve.rates[i].rate_share = values[kAttentionRates + i];
  }
}

Seconds rounded(Seconds time) { return Seconds(rounded_coefficient(time.value() * 1e6) * 1e-6); }

void tidy_attention_curve(AttentionCurve& curve, bool copies_kv) {
  curve.start = rounded(curve.start);
  curve.block = rounded(curve.block);
  curve.tail_share = rounded_coefficient(curve.tail_share);
  curve.bandwidth_share = rounded_coefficient(curve.bandwidth_share);
  double& moves = curve.measured_with.extra_moves;
  moves = copies_kv ? rounded_coefficient(moves) : 0;
  for (HeadRate& rate : curve.rates) rate.rate_share = rounded_coefficient(rate.rate_share);
}

}  // namespace

AttentionCurve fit_attention(const GpuSpec& gpu, Pass pass,
                             const std::vector<AttentionPoint>& points,
                             const std::string& fitted_on, DType dtype) {
  const std::vector<AttentionPoint> seen = half_of(points, pass, false);
  const std::vector<AttentionPoint> unseen = half_of(points, pass, true);
  SHARDWISE_CHECK(seen.size() + unseen.size() >= 8, std::to_string(seen.size()));
  const AttentionLimits limits = attention_limits(gpu, dtype);

  AttentionCurve curve;
  std::set<std::int64_t> head_dims;
  bool copies_kv = false;
  for (const AttentionPoint& point : seen) {
    head_dims.insert(mean_head_dim(point.work));
    copies_kv = copies_kv || point.copies_kv;
  }
  for (const std::int64_t each : head_dims) curve.rates.push_back({each, 1.0});

  FitProblem problem;
  problem.start = {5e-6, 1e-6, 0.3, 0.8, 2};
  problem.low = {1e-7, 1e-8, 0.01, 0.5, 0.01};
  problem.high = {1e-4, 5e-5, 3, 1, 100};
  // A processor takes blocks one after the other, and moves the bytes of one beside nothing.
  if (gpu.cores_per_rank > 0) problem.high = {1e-2, 1e-2, 3, 1, 100};
  for (std::size_t i = 0; i < curve.rates.size(); ++i) {
    problem.start.push_back(0.6);
    problem.low.push_back(0.05);
    problem.high.push_back(1);
  }
  problem.points = seen.size();
  problem.residuals = [&](const std::vector<double>& values, std::vector<double>& out) {
    AttentionCurve tried = curve;
    set_attention_parameters(tried, values);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      out[i] = std::log(measured_seconds(tried, limits, seen[i]) / seen[i].time.value());
    }
  };
  set_attention_parameters(curve, robust_fit(problem, {0.05, 0.001, 4, 100}));
  tidy_attention_curve(curve, copies_kv);

  std::vector<double> errors;
  for (const AttentionPoint& each : unseen) {
    errors.push_back(std::abs(measured_seconds(curve, limits, each) / each.time.value() - 1));
  }
  curve.fit = fit_record(fitted_on, kMethod, seen.size() + unseen.size(), std::move(errors));
  return curve;
}

MemoryBoundCurve fit_memory_bound(const GpuSpec& gpu, const std::vector<MovePoint>& points,
                                  const std::string& fitted_on) {
  SHARDWISE_CHECK(points.size() >= 8, std::to_string(points.size()));
  const double bandwidth = gpu.memory_bandwidth.value();
  const auto seconds = [&](const MovePoint& point, double start, double share) {
    return start + static_cast<double>(point.moved.value()) / (bandwidth * share);
  };
  std::vector<MovePoint> halves[2];
  for (std::size_t i = 0; i < points.size(); ++i) {
    // Many shapes move the same bytes: the place in the table tells them apart.
    const auto at = static_cast<std::int64_t>(i);
    halves[left_out({points[i].moved.value(), at}) ? 1 : 0].push_back(points[i]);
  }
  const std::vector<MovePoint>& seen = halves[0];
  FitProblem problem{{2e-6, 0.85}, {1e-7, 0.2}, {1e-4, 1}, {}, seen.size()};
  problem.residuals = [&](const std::vector<double>& values, std::vector<double>& out) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      out[i] = std::log(seconds(seen[i], values[0], values[1]) / seen[i].time.value());
    }
  };
  const std::vector<double> values = robust_fit(problem, {0.05, 0.001, 2, 100});
  MemoryBoundCurve curve;
  curve.start = rounded(Seconds(values[0]));
  curve.bandwidth_share = rounded_coefficient(values[1]);
  std::vector<double> errors;
  for (const MovePoint& each : halves[1]) {
    const double predicted = seconds(each, curve.start.value(), curve.bandwidth_share);
    errors.push_back(std::abs(predicted / each.time.value() - 1));
  }
  curve.fit = fit_record(fitted_on, kMethod, points.size(), std::move(errors));
  return curve;
}

}  // namespace shardwise
