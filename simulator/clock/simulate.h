#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/clock/engine.h"
#include "simulator/clock/memory.h"
#include "simulator/workload/price_scale.h"
#include "simulator/workload/prices.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

struct SimulationOptions {
  Granularity granularity = Granularity::layer;
  Transport transport = Transport::usual;
  bool contention = true;       // links, memory bandwidth and multiprocessors are shared
  bool shared_links = true;     // with contention: links are, a rank's own and those of several
  bool host = true;             // the host issues kernel by kernel
  bool in_issue_order = false;  // CUDA_DEVICE_MAX_CONNECTIONS=1
  bool all_ranks = false;
  /// Keeps to a length alone: no micro-batch is left out, whatever steady_step() says of few.
  bool every_microbatch = false;
  /// Prices that are changed before the step is run. The step-time model's part of the report (the
  /// memory ledger, reading the batch) knows nothing of them.
  std::vector<PriceScale> scales;
};

/// A plan's step on the virtual clock, with what it was made from: the workload refers to program
/// and prices.
struct Simulation {
  Simulation() = default;
  Simulation(Simulation&&) = default;
  Simulation& operator=(Simulation&&) = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() = default;

  StepProgram program;
  Prices prices;
  Workload work;
  Timeline timeline;
  std::vector<double> met;           // meeting_times()
  std::vector<MemoryCourse> memory;  // of the first rank of each stage
  StepReport report;                 // origin predicted, with its timeline

  /// The actor of a stage with the lowest rank.
  const Actor& actor_of(std::size_t stage) const;
  /// The actor that stands for a rank, which is of that stage. \pre 0 <= rank < layout.world()
  const Actor& actor_of(std::int64_t rank, std::size_t stage) const;
};

/// Lowers the plan, prices it, runs it, and says where the time and the memory went. What the clock
/// does not know (reading the batch, checkpoints, the verdict of the memory ledger) is the closed
/// form's. Pure: equal plans and options give equal results, to the bit.
/// \pre check_layout has no diagnostics for the plan's layout; hanging_at is empty
Simulation simulate(const Plan& plan, const SimulationOptions& options = {});

/// Simulates as above, or ends with nothing soon after `stop` is requested: it is looked at between
/// the parts of the work, and as the engines do while they run.
std::optional<Simulation> simulate(const Plan& plan, const SimulationOptions& options,
                                   const std::stop_token& stop);

/// The operations at which the streams of each stage stand still for ever: "bwd.layer3.mb1 on stage
/// 0". Empty where the step ends, as it does for every plan unless operations start in issue order.
std::vector<std::string> hanging_at(const Plan& plan, const SimulationOptions& options);

/// Length of the same step and nothing else, faster: without memory and report, and by few
/// micro-batches where these prove it (steady_step()), which may differ in the last digits.
Seconds simulated_length(const Plan& plan, const SimulationOptions& options = {});

/// Length as above, or nothing soon after `stop` is requested.
std::optional<Seconds> simulated_length(const Plan& plan, const SimulationOptions& options,
                                        const std::stop_token& stop);

/// The step_time of simulate()'s report: that length, and what the step waits for its batch.
Seconds simulated_step(const Plan& plan, const SimulationOptions& options = {});

}  // namespace shardwise::sim
