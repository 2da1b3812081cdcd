#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "planner/cost/collectives/collective.h"

namespace shardwise {

/// One collective that was timed, alone on the machine.
struct CollectiveMeasurement {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupShape group;
  Bytes bytes;
  Seconds time;
};

/// `ranks` neighbours with the rest of the machine idle: how nccl-tests is run.
GroupShape packed_group(const ClusterSpec& cluster, std::int32_t ranks);

/// Every fifth point, by what was measured and not by where it stands in a file: a point that was
/// measured twice is wholly in the fit or wholly out.
bool is_left_out(const CollectiveMeasurement& each);

/// How far predictions are from measurements.
struct CollectiveResidual {
  std::string what;  // "all_reduce, 8 ranks"; "all"
  int points = 0;
  double median_error = 0;  // |predicted - measured| / measured
  double p95_error = 0;
};

struct CollectiveFit {
  CollectiveCoefficients coefficients;
  int points = 0;  // in the fit and left out
  int left_out = 0;
  /// On points left out of the fit, of 64 KiB and more: all, then by kind, then by kind and ranks.
  std::vector<CollectiveResidual> residuals;
};

/// Coefficients of tier `tier` that make collective_time agree with the measurements, starting from
/// the defaults; those of the other tiers stay. Stays too: what is in `fixed`, what is 0 (a share
/// of 0 turns a protocol off), and what no point depends on. \pre measurements not empty
CollectiveFit fit_collectives(ClusterSpec cluster, std::size_t tier,
                              const std::vector<CollectiveMeasurement>& measurements,
                              const std::set<std::string>& fixed = {});

/// Errors of the cluster's present coefficients on all measurements of at least 64 KiB.
std::vector<CollectiveResidual> collective_residuals(
    const ClusterSpec& cluster, const std::vector<CollectiveMeasurement>& measurements);

}  // namespace shardwise
