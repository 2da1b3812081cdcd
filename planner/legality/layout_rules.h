#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Fields of a layout, as bits of a set: what a rule reads.
enum LayoutField : std::uint32_t {
  kReadsNothing = 0,  // what no search would choose: only for layouts that a user wrote
  kReadsTp = 1U << 0,
  kReadsCp = 1U << 1,
  kReadsPp = 1U << 2,
  kReadsVpp = 1U << 3,
  kReadsStageLayers = 1U << 4,  // first_stage_layers, last_stage_layers
  kReadsEp = 1U << 5,
  kReadsEtp = 1U << 6,
  kReadsDp = 1U << 7,        // dp_shard, dp_replicate
  kReadsDpTotal = 1U << 22,  // their product only
  kReadsMicroBatch = 1U << 8,
  kReadsZeroStage = 1U << 9,
  kReadsSequenceParallel = 1U << 10,
  kReadsOuter = 1U << 11,
  kReadsReshard = 1U << 12,
  kReadsReduce = 1U << 13,
  kReadsOffloadOptimizer = 1U << 14,
  kReadsOffloadActivations = 1U << 15,
  kReadsDoubleBuffer = 1U << 16,
  kReadsGradients = 1U << 17,  // fp32_gradients
  kReadsOverlap = 1U << 18,
  kReadsRecompute = 1U << 19,
  kReadsSchedule = 1U << 20,
  kReadsCpKind = 1U << 21,
  kReadsRemainders = 1U << 23,  // store_param_remainders
  kReadsBuckets = 1U << 24,     // ddp_bucket_size, ddp_pad_buckets_for_high_nccl_busbw
  kReadsJob = 1U << 25,         // no field: all layouts of the job, or none
};

/// Facts that rules ask about besides the layout: found once for all layouts of a job.
struct LayoutQuestion {
  const ModelSpec* model = nullptr;
  const ClusterSpec* cluster = nullptr;
  const JobSpec* job = nullptr;
  const EngineProfile* engine = nullptr;
  std::int64_t blocks = 0;      // that a pipeline may cut between
  std::int64_t cut_by_tp = 0;   // greatest common divisor of all extents that tp cuts; 0 = none
  std::int64_t cut_by_etp = 0;  // same for the routed experts
  std::int64_t heads = 0;       // same for query heads and for key and value heads
  std::int64_t kv_heads = 0;
  bool fused_attention = false;
};
LayoutQuestion layout_question(const ModelSpec& model, const ClusterSpec& cluster,
                               const JobSpec& job, const EngineProfile& engine);

/// Breach of a rule, for the user.
struct RuleBreach {
  std::string flag;  // "--tp"
  std::string message;
  std::string hint;
};

/// One thing that every layout must satisfy. `broken` and `say` look at no other fields than
/// `reads`, so a search drops all layouts that share these fields at once.
struct LayoutRule {
  std::string_view id;    // "heads_by_tp"
  std::string_view text;  // what must hold: "tp divides the attention heads"
  std::uint32_t reads = 0;
  /// The layout runs, but is the same as another: a value that has no effect. A user may write it,
  /// a search does not count it twice.
  bool redundant = false;
  bool (*broken)(const LayoutQuestion&, const Layout&) = nullptr;
  RuleBreach (*say)(const LayoutQuestion&, const Layout&) = nullptr;  // null when redundant
};

/// All rules, in the order in which a user reads about them.
std::span<const LayoutRule> layout_rules();

}  // namespace shardwise
