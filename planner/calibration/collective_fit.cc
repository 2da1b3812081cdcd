#include "planner/calibration/collective_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/calibration/robust_fit.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/mixed_bits.h"

namespace shardwise {
namespace {

constexpr Bytes kSmallestScored = 64_KiB;
constexpr double kLeast = 1e-4;  // for a logarithm

double error_of(const ClusterSpec& cluster, const CollectiveMeasurement& each) {
  return collective_time(cluster, each.kind, each.bytes, each.group) / each.time - 1;
}

CollectiveResidual summary(std::string what, std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  CollectiveResidual residual;
  residual.what = std::move(what);
  residual.points = static_cast<int>(errors.size());
  const auto quantile = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(errors.size()));
    return errors[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
  };
  residual.median_error = quantile(0.5);
  residual.p95_error = quantile(0.95);
  return residual;
}

std::vector<CollectiveResidual> residuals_of(
    const ClusterSpec& cluster, const std::vector<CollectiveMeasurement>& measurements) {
  std::map<int, std::map<std::string, std::vector<double>>> errors;  // all, by kind, by ranks
  for (const CollectiveMeasurement& each : measurements) {
    if (each.bytes < kSmallestScored) continue;
    const double error = std::abs(error_of(cluster, each));
    const std::string kind(name_of(each.kind));
    errors[0]["all"].push_back(error);
    errors[1][kind].push_back(error);
    errors[2][fmt::format("{}, {} ranks", kind, each.group.ranks)].push_back(error);
  }
  std::vector<CollectiveResidual> residuals;
  for (const auto& [level, groups] : errors) {
    for (const auto& [what, values] : groups) residuals.push_back(summary(what, values));
  }
  return residuals;
}

}  // namespace

bool is_left_out(const CollectiveMeasurement& each) {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) { hash = mixed(hash + value, 0); };
  mix(static_cast<std::uint64_t>(each.kind));
  mix(static_cast<std::uint64_t>(each.group.ranks));
  mix(static_cast<std::uint64_t>(each.bytes.value()));
  return hash % 5 == 0;
}

GroupShape packed_group(const ClusterSpec& cluster, std::int32_t ranks) {
  Layout layout;
  layout.dp_shard = ranks;
  return group_shape(cluster, layout, GroupKind::dp_shard);
}

std::vector<CollectiveResidual> collective_residuals(
    const ClusterSpec& cluster, const std::vector<CollectiveMeasurement>& measurements) {
  return residuals_of(cluster, measurements);
}

CollectiveFit fit_collectives(ClusterSpec cluster, std::size_t tier,
                              const std::vector<CollectiveMeasurement>& measurements,
                              const std::set<std::string>& fixed) {
  SHARDWISE_CHECK(!measurements.empty(), "no measurements");
  SHARDWISE_CHECK(tier < cluster.tiers.size(), fmt::format("tier {}", tier));
  std::vector<CollectiveMeasurement> fitted;
  std::vector<CollectiveMeasurement> out;
  for (const CollectiveMeasurement& each : measurements) {
    (is_left_out(each) ? out : fitted).push_back(each);
  }
  CollectiveCoefficients& coefficients = cluster.tiers[tier].collectives.coefficients;
  const CollectiveCoefficients given = coefficients;
  const CollectiveCoefficients start;

  // The fewest ranks for which switches reduce is a choice of NCCL's, not a speed; a share of 0
  // says that a protocol is not used.
  std::vector<const CoefficientName*> free;
  FitProblem problem;
  for (const CoefficientName& name : kCoefficients) {
    if (name.key == "in_network_ranks" || given.*name.field == 0) continue;
    if (fixed.contains(std::string(name.key))) continue;
    free.push_back(&name);
    problem.start.push_back(std::max(kLeast, start.*name.field));
    problem.low.push_back(std::max(kLeast, name.low));
    // LL sends a flag of 4 bytes with every 4 bytes, LL128 one of 8 with every 120.
    const double limit = name.key == "ll_share"      ? given.simple_share / 2
                         : name.key == "ll128_share" ? given.simple_share * 120 / 128
                                                     : name.high;
    problem.high.push_back(limit);
  }
  const auto set = [&](const std::vector<double>& parameters) {
    for (std::size_t i = 0; i < free.size(); ++i) coefficients.*free[i]->field = parameters[i];
  };
  problem.points = fitted.size();
  problem.residuals = [&](const std::vector<double>& parameters, std::vector<double>& residuals) {
    set(parameters);
    for (std::size_t i = 0; i < fitted.size(); ++i) {
      residuals[i] = std::log1p(error_of(cluster, fitted[i]));
    }
  };
  std::vector<double> best = robust_fit(problem);
  // What no point depends on is what it was, not where the search left it.
  std::vector<double> errors(problem.points);
  std::vector<double> moved(problem.points);
  problem.residuals(best, errors);
  for (std::size_t i = 0; i < best.size(); ++i) {
    const double stays = std::max(kLeast, given.*free[i]->field);
    const double fitted_value = std::exchange(best[i], stays);
    problem.residuals(best, moved);
    if (moved != errors) best[i] = fitted_value;
  }
  // Four digits are more than the data hold, and what the file shows is what is used.
  for (double& each : best) each = std::stod(fmt::format("{:.4g}", each));
  set(best);
  // The two protocols of low latency are alike in the model; LL128 is the one with more bandwidth.
  if (coefficients.ll128_share > 0 && coefficients.ll128_share < coefficients.ll_share) {
    std::swap(coefficients.ll_share, coefficients.ll128_share);
    std::swap(coefficients.ll_step, coefficients.ll128_step);
  }

  CollectiveFit fit;
  fit.coefficients = coefficients;
  fit.points = static_cast<int>(measurements.size());
  fit.left_out = static_cast<int>(out.size());
  fit.residuals = residuals_of(cluster, out);
  return fit;
}

}  // namespace shardwise
