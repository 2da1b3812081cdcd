#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/legality/layout_rules.h"
#include "planner/search/space/rank_orders.h"
#include "planner/search/space/space.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Number of layouts a rule dropped. A layout counts under the first rule it breaks.
struct RuleCount {
  const LayoutRule* rule = nullptr;
  std::int64_t layouts = 0;
};

/// enumerated = sum of `pruned` + legal.
struct SpaceCounts {
  std::int64_t enumerated = 0;
  std::int64_t legal = 0;
  std::vector<RuleCount> pruned;  // in the order in which the rules are tried

  std::int64_t pruned_total() const;
  SpaceCounts& operator+=(const SpaceCounts& other);  // of the same Enumerator
};

/// Ranks of one pipeline stage that are data-parallel, and the orders that lie differently on the
/// links.
struct Mesh {
  std::int32_t pp = 1;
  std::int32_t dp_shard = 1;
  std::int32_t dp_replicate = 1;
  std::vector<PlacedOrder> orders;
};

/// Layouts that share tp, cp, ep and etp.
struct DegreeGroup {
  Layout base;               // with these four, and what the space leaves no choice about
  std::vector<Mesh> meshes;  // legal for some micro-batch size; by pp, then dp_shard
};

struct PipelineChoice {
  std::int32_t vpp = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t first_stage_layers = 0;
  std::int32_t last_stage_layers = 0;
};

/// Fields that decide the cost of a layer besides the degrees.
struct LayerChoice {
  bool sequence_parallel = false;
  bool offload_activations = false;
  bool fp32_gradients = true;
  Recompute recompute = Recompute::none;
  std::int32_t recompute_interval = 1;
  ContextParallelKind cp_kind = ContextParallelKind::ring;
  friend bool operator==(const LayerChoice&, const LayerChoice&) = default;
};

/// Treatment of the states by data parallelism.
struct StateChoice {
  std::int8_t zero_stage = 0;
  bool outer_shards_optimizer = false;
  std::int32_t reshard_after_forward = 1;
  bool reduce_every_microbatch = true;
  bool offload_optimizer = false;
  bool store_param_remainders = false;
  bool double_buffer = false;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  std::int64_t ddp_bucket_size = 0;
  bool ddp_pad_buckets_for_high_nccl_busbw = false;
};

void set(Layout& layout, const PipelineChoice& choice);
void set(Layout& layout, const LayerChoice& choice);
void set(Layout& layout, const StateChoice& choice);

/// One micro-batch size of a DegreeGroup: the legal layouts are, for each stretch, the product of
/// its pipelines, `layers`, its meshes, and each mesh's states and orders.
struct WorkItem {
  struct PlacedMesh {
    const Mesh* mesh = nullptr;
    std::vector<StateChoice> states;
  };
  /// Meshes of the same number of stages.
  struct Stretch {
    std::int32_t pp = 1;
    std::int64_t num_microbatches = 1;
    std::vector<PipelineChoice> pipelines;
    std::vector<PlacedMesh> meshes;

    /// Leaves of one pipeline and layer choice: states and orders of all meshes.
    std::int64_t leaves() const;
  };
  Layout base;
  std::vector<LayerChoice> layers;
  std::vector<Stretch> stretches;

  std::int64_t layouts() const;
};

/// Walks a space, dropping subtrees by rules as soon as the fields a rule reads are chosen, and
/// counting what is dropped.
class Enumerator {
 public:
  /// \pre `question` and `space` outlive this
  Enumerator(const LayoutQuestion& question, const SearchSpace& space);

  /// tp, cp, ep and etp that break no rule. Adds to `counts` everything that is enumerated, and
  /// what the rules about these four drop.
  std::vector<DegreeGroup> degree_groups(SpaceCounts& counts) const;
  /// Fills the meshes of a group. Adds nothing: each micro-batch size counts for itself.
  /// \param shapes  of the question's cluster
  void place(DegreeGroup& group, ShapeCache& shapes) const;
  /// The work of one micro-batch size, and the counts below it. \pre place(group)
  WorkItem work_item(const DegreeGroup& group, std::int32_t micro_batch_size,
                     SpaceCounts& counts) const;
  const std::vector<std::int32_t>& micro_batch_sizes() const { return space_.micro_batch_size; }

  /// Counts of nothing, to add to.
  SpaceCounts no_counts() const;

 private:
  /// Points at which rules are tried; a rule is tried at the first where all it reads is chosen.
  enum Level { kTp, kCp, kExperts, kBatch, kPp, kMesh, kPipeline, kLayer, kStates, kLevels };

  struct Split {
    std::int32_t pp = 1;
    std::int32_t dp_shard = 1;
    std::int32_t dp_replicate = 1;
  };

  /// A place in `rules_`; kUnbroken when the layout keeps all rules of the level.
  std::size_t broken(Level level, const Layout& layout) const;
  static constexpr std::size_t kUnbroken = ~std::size_t{0};
  static void drop(SpaceCounts& counts, std::size_t rule, std::int64_t layouts);
  /// Every pp x dp_shard x dp_replicate that uses the GPUs that tp and cp leave, by pp.
  std::vector<Split> splits(const Layout& layout) const;

  const LayoutQuestion& question_;
  const SearchSpace& space_;
  std::vector<const LayoutRule*> rules_;          // by level, in the order of the counts
  std::array<std::size_t, kLevels + 1> first_{};  // rule of each level
  std::vector<PipelineChoice> pipelines_;
  std::vector<LayerChoice> layers_;
  std::vector<StateChoice> states_;
  std::int64_t below_mesh_ = 1;  // layouts of a mesh
};

}  // namespace shardwise
