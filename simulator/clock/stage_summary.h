#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/layer/layer_time.h"
#include "planner/recorded/recorded_step.h"
#include "planner/spec/report/report.h"
#include "simulator/clock/engine.h"
#include "simulator/workload/layer_transfers.h"
#include "simulator/workload/price_scale.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// A rank's run of its stage's program. Times by operation, in seconds.
struct StageRunTimes {
  const WorkProgram* work = nullptr;
  std::span<const double> start;
  std::span<const double> end;
  double length = 0;  // of the step, all stages
  const Workload* workload = nullptr;
  const Actor* actor = nullptr;
  std::span<const double> met;  // meeting_times() of the workload
};

/// By meeting: when the last of those who meet was there.
std::vector<double> meeting_times(const Workload& work, const Timeline& timeline);

/// When an operation ran. It is ready when it starts.
RecordedSpan span_of(const StageRunTimes& run, std::uint32_t op);

/// The rank's step as reports and traces read it; the workload's meetings are the rendezvous. \pre
/// the run's workload outlives it
RecordedStep recorded(const StageRunTimes& run);

/// Communication of one axis inside whole layers.
struct WithinLayers {
  Seconds alone;    // all of it
  Seconds exposed;  // that which delays the layer's kernels
};

/// Communication inside one operation that is a pass of a whole layer.
struct WithinPass {
  WithinLayers tp;
  WithinLayers cp;
  WithinLayers ep;
  Seconds exposed;  // of all axes
};

/// Where the step's time goes on a stage.
struct StepParts {
  TimeParts time;   // adds up to the step
  WithinLayers tp;  // nothing at the granularity of kernels, where streams of their own have it
  WithinLayers cp;
  WithinLayers ep;
};

/// Transfers inside passes as a PriceScale has changed them.
struct ScaledTransfers {
  const LayerTransfers& planned;
  std::span<const PriceScale> scales;  // of the run's prices
};

/// Work of a stage's compute stream, and its waits while it ran nothing. Kernels of
/// whole layers are cut into compute and communication as `layers` (of every kind) says and
/// `scaled`, null where nothing is scaled.
StepParts step_parts(const StageRunTimes& run, std::span<const LayerTime> layers,
                     const ScaledTransfers* scaled = nullptr);

/// By operation of the run: the communication that step_parts() finds inside it; nothing of those
/// that are no pass of a whole layer. step_parts() has their sums.
std::vector<WithinPass> within_passes(const StageRunTimes& run, std::span<const LayerTime> layers,
                                      const ScaledTransfers* scaled = nullptr);

}  // namespace shardwise::sim
