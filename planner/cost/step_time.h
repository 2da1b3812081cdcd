#pragma once

#include <cstdint>

#include "planner/cost/collective_table.h"
#include "planner/cost/stage_times.h"
#include "planner/cost/time_rules.h"
#include "planner/spec/layout.h"
#include "planner/spec/report.h"

namespace shardwise {

/// What a layout adds to its stages: everything a leaf of the search varies.
struct LeafContext {
  const TimeRules* rules = nullptr;
  const Layout* layout = nullptr;
  const DataParallelTables* groups = nullptr;
  std::int64_t num_microbatches = 1;
};

/// Communication and idle time that step_time found, for reports. Sums over a step.
struct StepDetail {
  Seconds gather;             // parameter all-gathers, hidden or not
  Seconds reduce;             // gradient reduction, hidden or not
  Seconds copies;             // of gathered weights and of gradients, part of dp_exposed
  Seconds overlap_tax;        // compute slowed by communication beside it, part of dp_exposed
  Seconds finalize;           // reductions after the last backward pass, part of optimizer
  Seconds messages;           // between stages, hidden or not
  double gathered_bytes = 0;  // full buffers on this rank, over the step
  double reduced_bytes = 0;
  double outer_gathered_bytes = 0;  // the same over dp_replicate: shards of the inner axis
  double outer_reduced_bytes = 0;
  Seconds offload;  // host traffic, hidden or not
  double offload_bytes = 0;
  BytesPerSecond offload_required;  // bandwidth at which offloading activations would be hidden
};

/// Kernels that the host of one rank issues for one micro-batch on `stage`: those of its layers,
/// and in a pipeline what each chunk receives and sends, forward and backward.
double kernels_a_microbatch(const StageTime& stage, const Layout& layout);

/// Whether the host of a stage issues nothing while a message of its pipeline is on its way.
bool waits_for_messages(const TimeRules& rules, const Layout& layout);

/// Where the time of a step goes on the slowest stage. Plain values in and out; allocates nothing
/// unless `detail` is given. docs/time.md, "Step time", has every formula.
TimeParts step_time(const StageTimes& stages, const LeafContext& context,
                    StepDetail* detail = nullptr);

}  // namespace shardwise
