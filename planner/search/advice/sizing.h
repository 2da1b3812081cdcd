#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/advice/goodput.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/curve_sources.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Tokens to train, and by when.
struct SizingGoal {
  std::int64_t tokens = 0;
  Seconds deadline;
  Flops work;  // of the whole training by the model's formula; 0 = unknown, nothing is skipped
  DType precision = DType::bf16;
  bool experts = false;               // of the model: grouped GEMMs count too
  std::int64_t most_gpus = 65536;     // larger clusters are not tried
  Seconds restart = Seconds(600);     // from a failure to the first step after it
  double default_mtbf_hours = 50677;  // of one GPU, where a cluster's file states none
};

/// One machine kind and count, with its best layout.
struct SizingOffer {
  std::string cluster;
  std::string gpu;
  std::int64_t gpus = 0;
  StepReport report;  // of the best layout
  Goodput goodput;
  Seconds wall;  // of the whole training, failures included
  double gpu_hours = 0;
  double dollars = 0;   // 0 = no price known
  double headroom = 0;  // share of usable memory that the upper bound leaves free; may be negative
  bool in_time = false;
  /// The curves behind its step that were not measured, and what stands in for each.
  std::vector<BorrowedCurve> borrowed;
  bool measured = false;  // GEMMs and links were, on this chip: counts_as_measured()
};

/// Why a cluster has no offer in time.
struct SizingRefusal {
  std::string cluster;
  std::string reason;
};

struct Sizing {
  /// In time. Machines that count as measured first; each group cheapest first, those without a
  /// price last.
  std::vector<SizingOffer> offers;
  std::vector<SizingOffer> late;  // the fastest of each cluster that has none in time
  std::vector<SizingRefusal> refusals;
  std::vector<Assumption> assumptions;
};

/// The best layout of the job on exactly cluster.gpus GPUs, or nothing when none fits.
using BestStep = std::function<std::optional<StepReport>(const ClusterSpec&)>;
/// The best layout of the usual space by step time: found by search(), which times only layouts
/// that may become the best. Where no layout fits for certain, the best of those at risk.
/// \pre all outlive the result; job.global_batch_size is set
BestStep best_step(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine);

/// Progress of a sweep, before each search.
struct SizingProgress {
  std::string cluster;
  std::int64_t gpus = 0;
  std::size_t clusters_done = 0;
  std::size_t clusters = 0;
};
using SaySizing = std::function<void(const SizingProgress&)>;

/// Counts of GPUs worth trying on a cluster: whole nodes, and below a node the powers of two; each
/// a power of two or three times one, since batches and heads divide by those. Ascending.
std::vector<std::int64_t> gpu_counts(const ClusterSpec& cluster, std::int64_t most);

/// Length and price of the whole training with this step.
SizingOffer price_offer(const ClusterSpec& cluster, const StepReport& report,
                        const SizingGoal& goal);

/// Sweeps clusters and counts. A cluster is tried with ever more GPUs, starting where the deadline
/// could be met at peak speed, until two counts in a row that meet it cost more than the cheapest
/// before: more GPUs may leave memory for faster layouts, but past that they only cost more.
Sizing size_purchase(const std::vector<ClusterSpec>& clusters, const SizingGoal& goal,
                     const BestStep& best, const SaySizing& progress = {});

}  // namespace shardwise
