#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/cost/estimate.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"

namespace shardwise {

/// A layout with one choice changed, and what follows from it on the same GPUs.
struct LayoutChange {
  std::string text;               // flags to type: "--recompute=full", "--tp=8 --dp-shard=8"
  bool rounds_gradients = false;  // kept and reduced in 16 bits: results are other numbers
  Layout layout;
};

/// Every legal layout that differs from `layout` in one choice: a degree with the data parallelism
/// that is left, micro-batch, recompute, ZeRO stage, sequence parallelism, resharding, offloading,
/// main weights as remainders, dtype of gradients, schedule.
std::vector<LayoutChange> single_changes(const ModelSpec& model, const ClusterSpec& cluster,
                                         const JobSpec& job, const EngineProfile& engine,
                                         const Layout& layout);

struct Fix {
  LayoutChange change;
  Evaluation cost;
};

/// Of the single changes after which the upper bound is at most `usable`, the one with the least
/// step time a sequence; nothing when none is enough. For a layout that fits, that is no question.
std::optional<Fix> cheapest_fix(const ModelSpec& model, const ClusterSpec& cluster,
                                const JobSpec& job, const EngineProfile& engine,
                                const Layout& layout, Bytes usable);

/// "--recompute=full: 61.2 GiB, 1.32 s a step".
std::string to_string(const Fix& fix);

}  // namespace shardwise
