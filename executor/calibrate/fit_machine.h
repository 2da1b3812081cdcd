#pragma once

#include <string>
#include <vector>

#include "executor/calibrate/machine.h"
#include "executor/calibrate/measure.h"
#include "planner/spec/machine/cluster_spec.h"

namespace shardwise::exec {

/// Who computed while a machine was measured.
struct RanksOnMachine {
  int ranks = 1;
  int threads = 1;           // that compute, a rank
  std::string communicator;  // "threads", "MPI", "sockets"
};

/// Distance of a curve from what it was fitted to, or from the half that it was not shown.
struct Residual {
  std::string curve;
  int points = 0;
  double median_error = 0;  // |predicted - measured| / measured
  double p95_error = 0;
  std::string rate;  // at best, for people: "92.1 GFLOP/s"
};

/// A cluster whose GPU is a rank's share of this machine, and how well it fits.
struct FittedMachine {
  ClusterSpec cluster;
  std::vector<Residual> residuals;
};

/// Fits the planner's curves to what was measured. \param name  of the cluster
FittedMachine fit_machine(const std::string& name, const Machine& machine,
                          const RanksOnMachine& ranks, const Measurements& measured);

}  // namespace shardwise::exec
