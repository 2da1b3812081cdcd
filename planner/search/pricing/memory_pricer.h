#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/stage_totals.h"
#include "planner/cost/step/stage_times.h"
#include "planner/schedule/held_passes.h"
#include "planner/search/pricing/pipeline_stages.h"
#include "planner/search/space/enumerate.h"

namespace shardwise {

/// Memory of all orders of a layout: orders move ranks, not bytes.
struct MemoryPrice : MemoryPeaks {
  std::int32_t worst_stage = 0;  // the first of those whose point this is
};

/// Memory of the fullest stage of the layouts of a WorkItem, as stage_peaks() has it. States are
/// those of a stage's parameters and a mesh, whatever is recomputed and scheduled; activations
/// those of a pipeline and a layer choice, whatever the mesh: each is made once. One thread's.
class MemoryPricer {
 public:
  /// \pre both outlive this
  MemoryPricer(const ModelSpec& model, const MemoryRules& rules) : model_(model), rules_(rules) {}

  /// Fills `held` and `passes` of the stages of a pipeline.
  void prepare(PipelineStages& stages, const Layout& layout, std::int64_t num_microbatches);
  /// A stretch's meshes are next, on which layers hold other states.
  void start(const WorkItem::Stretch& stretch);
  /// The layers of a pipeline are next.
  /// \param memories  by kind, of `layout`; they outlive the next start
  void start(const PipelineStages& stages, std::span<const LayerMemory> memories,
             const Layout& layout);

  /// \param layout       with the values of mesh `mesh` of the stretch and its state `state`
  MemoryPrice price(const Layout& layout, std::size_t mesh, std::size_t state);
  /// Whether the fullest moment of a micro-batch is found for this layout alone.
  bool is_dear(const Layout& layout) const;
  /// Below the price, found without that moment. Its worst stage is not said.
  MemoryPrice least(const Layout& layout, std::size_t mesh, std::size_t state);

 private:
  /// All that the states of a stage depend on besides degrees and mesh.
  struct HeldLayers {
    std::vector<StageMix::Share> shares;
    bool copies_embedding = false;
    std::vector<StageRun> runs;  // where buckets are filled in order
    friend bool operator==(const HeldLayers&, const HeldLayers&) = default;
  };
  struct Stage {
    std::int32_t number = 0;
    std::int32_t held = 0;
    StageParts parts;
    std::int64_t workspace = 0;
    std::array<std::optional<std::int64_t>, 2> least_pass;  // by offload_activations
    std::array<std::optional<PassTotals>, kPassNumbers> passes;
  };

  const StateTotals& states_of(const Stage& stage, const StageContext& context, std::size_t at);
  const PassTotals& pass_of(Stage& stage, const StageContext& context);

  const ModelSpec& model_;
  const MemoryRules& rules_;
  std::vector<HeldLayers> known_;
  // State of the stretch in work.
  std::int64_t num_microbatches_ = 1;
  std::vector<std::size_t> first_state_;  // of each mesh, in a table of states
  std::size_t states_ = 0;                // of all meshes
  std::vector<std::vector<std::optional<StateTotals>>> totals_;  // by HeldLayers
  PassTotals of_mesh_;
  // State of the pipeline and layer choice in work.
  std::vector<Stage> stages_;
};

}  // namespace shardwise
