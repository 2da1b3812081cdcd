#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// A layout with one choice changed, and what follows from it on the same GPUs.
struct LayoutChange {
  std::string text;               // flags to type: "--recompute=full", "--tp=8 --dp-shard=8"
  bool rounds_gradients = false;  // kept and reduced in 16 bits: results are other numbers
  Layout layout;
};

/// "--tp=8 --dp-shard=8": the flags that make `to` of `from`.
std::string flags_between(const Layout& from, const Layout& to);

/// Every legal layout that differs from `layout` in one choice: a degree with the data parallelism
/// that is left, micro-batch, recompute, ZeRO stage, sequence parallelism, resharding, offloading,
/// main weights as remainders, dtype of gradients, schedule.
std::vector<LayoutChange> single_changes(const ModelSpec& model, const ClusterSpec& cluster,
                                         const JobSpec& job, const EngineProfile& engine,
                                         const Layout& layout);

/// A layout one choice away, and what it gains on the same GPUs.
struct Neighbour {
  LayoutChange change;
  Evaluation cost;
  Bytes memory_gained;  // the point falls by this; below zero it grows
  /// A step of as many sequences takes less by this. Without a stated batch, steps of neighbours
  /// may have more sequences.
  Seconds time_gained;
};

/// Every legal layout that differs from `layout` in one choice, whether it needs less memory or
/// more: single_changes(), and the other values of those fields. Asked to stop, it has the ones
/// that it has priced.
/// \param usable  memory that a layout may use: it decides the rows of a loss that are open
/// \pre `layout` is legal
std::vector<Neighbour> neighbours(const ModelSpec& model, const ClusterSpec& cluster,
                                  const JobSpec& job, const EngineProfile& engine,
                                  const Layout& layout, Bytes usable,
                                  const std::stop_token& stop = {});

}  // namespace shardwise
