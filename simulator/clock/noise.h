#pragma once

#include <cstdint>
#include <functional>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/step_timeline.h"
#include "simulator/clock/simulate.h"
#include "simulator/workload/failed_links.h"

namespace shardwise::sim {

/// Faults of a real cluster. Everything is drawn from `seed` and the trial's number.
struct NoiseRules {
  std::int64_t trials = 0;
  std::int64_t seed = 1;
  double jitter = 0;            // relative deviation of every operation's time, log-normal, mean 1
  std::int64_t slow_nodes = 0;  // whose GPUs compute `slow_factor` times longer
  double slow_factor = 1;
  NetworkFailures failed;         // gone; others carry its traffic
  double mtbf_hours_per_gpu = 0;  // between failures that stop the job; 0 = none
  double restart_minutes = 10;    // from a failure to the next step
};

/// Simulates every rank once a trial and gathers the step times; then, with failures, a long run of
/// each trial's steps with checkpoints at the interval of least expected wall time
/// (planner/search/advice/goodput.h). Trials that cut nodes off have no step; they count in goodput
/// as a job restarted on what is left, with as many replicas of the model as it holds. Exact for
/// the seed. \param say  is told how many trials are done before each further one \pre rules.trials
/// >= 1, rules.failed as network_left of failed_links.h has it
NoiseSpread noise_spread(const Plan& plan, const SimulationOptions& options,
                         const NoiseRules& rules,
                         const std::function<void(std::int64_t)>& say = {});

/// Share of wall time that counts, of `failures` failures drawn from `seed`: training between
/// checkpoints, checkpoints, lost work, restarts.
struct FailureRun {
  double mtbf = 0;        // seconds, of the whole job
  double checkpoint = 0;  // seconds one takes
  double restart = 0;
  double interval = 0;  // of training between two checkpoints
};
double simulated_goodput(const FailureRun& run, std::int64_t failures, std::uint64_t seed);

}  // namespace shardwise::sim
