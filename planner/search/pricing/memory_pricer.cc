#include "planner/search/pricing/memory_pricer.h"

#include <algorithm>

#include "planner/cost/memory/stage_moments.h"
#include "planner/cost/memory/stage_residents.h"

namespace shardwise {

void MemoryPricer::prepare(PipelineStages& stages, const Layout& layout,
                           std::int64_t num_microbatches) {
  for (const std::int32_t number : stages.fullest) {
    const StageLayers& layers = stages.layers[static_cast<std::size_t>(number)];
    HeldLayers held;
    held.shares = stage_mixes({&layers, 1}).front().shares;
    held.copies_embedding = layers.copies_embedding;
    if (rules_.engine->padding == ShardPadding::bucket) held.runs = layers.runs;
    const auto at = std::ranges::find(known_, held);
    stages.held.push_back(static_cast<std::int32_t>(at - known_.begin()));
    if (at == known_.end()) known_.push_back(std::move(held));
    stages.passes.emplace_back(layout, number, num_microbatches, chunks_alike(layers));
  }
}

void MemoryPricer::start(const WorkItem::Stretch& stretch) {
  num_microbatches_ = stretch.num_microbatches;
  first_state_.clear();
  states_ = 0;
  for (const WorkItem::PlacedMesh& mesh : stretch.meshes) {
    first_state_.push_back(states_);
    states_ += mesh.states.size();
  }
  for (auto& of_held : totals_) of_held.clear();
}

void MemoryPricer::start(const PipelineStages& stages, std::span<const LayerMemory> memories,
                         const Layout& layout) {
  stages_.resize(stages.fullest.size());
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    stage.number = stages.fullest[i];
    stage.held = stages.held[i];
    stage.parts =
        stage_parts(model_, memories, stages.layers[static_cast<std::size_t>(stage.number)]);
    const StageContext context = {&rules_, &layout, stage.number, num_microbatches_};
    remember_other_passes(stage.parts, stages.passes[i]);
    stage.workspace = resident_totals(stage.parts, context).workspace;
    stage.least_pass.fill(std::nullopt);
    stage.passes.fill(std::nullopt);
  }
}

const StateTotals& MemoryPricer::states_of(const Stage& stage, const StageContext& context,
                                           std::size_t at) {
  const auto held = static_cast<std::size_t>(stage.held);
  if (totals_.size() <= held) totals_.resize(known_.size());
  auto& totals = totals_[held];
  if (totals.empty()) totals.resize(2 * states_);
  std::optional<StateTotals>& made =
      totals[2 * at + static_cast<std::size_t>(context.layout->fp32_gradients)];
  if (!made) made = state_totals(stage_states(stage.parts, context));
  return *made;
}

const PassTotals& MemoryPricer::pass_of(Stage& stage, const StageContext& context) {
  const Layout& layout = *context.layout;
  if (pass_follows_mesh(context)) {
    of_mesh_ = pass_totals(stage.parts, context, stage_states(stage.parts, context));
    return of_mesh_;
  }
  std::optional<PassTotals>& made = stage.passes[pass_number(*rules_.engine, layout)];
  if (!made) made = pass_totals(stage.parts, context, stage_states(stage.parts, context));
  return *made;
}

bool MemoryPricer::is_dear(const Layout& layout) const {
  return pass_follows_mesh({&rules_, &layout, 0, num_microbatches_});
}

MemoryPrice MemoryPricer::least(const Layout& layout, std::size_t mesh, std::size_t state) {
  MemoryPrice price;
  const std::int64_t communicating = communicators(layout, rules_).bytes();
  const std::int64_t block = step_block_of(layout, num_microbatches_, rules_).bytes();
  for (Stage& stage : stages_) {
    const StageContext context = {&rules_, &layout, stage.number, num_microbatches_};
    const StateTotals& states = states_of(stage, context, first_state_[mesh] + state);
    std::optional<std::int64_t>& pass = stage.least_pass[layout.offload_activations ? 1 : 0];
    if (!pass) pass = least_pass_bytes(stage.parts, context);
    const StagePeaks peaks =
        least_peaks(states, *pass, {stage.workspace, communicating, block}, stage.parts, context);
    price.join(peaks);
  }
  return price;
}

MemoryPrice MemoryPricer::price(const Layout& layout, std::size_t mesh, std::size_t state) {
  MemoryPrice price;
  const std::int64_t communicating = communicators(layout, rules_).bytes();
  const std::int64_t block = step_block_of(layout, num_microbatches_, rules_).bytes();
  for (Stage& stage : stages_) {
    const StageContext context = {&rules_, &layout, stage.number, num_microbatches_};
    const StateTotals& states = states_of(stage, context, first_state_[mesh] + state);
    const StagePeaks peaks =
        stage_peaks(states, pass_of(stage, context), {stage.workspace, communicating, block},
                    stage.parts, context);
    const bool fuller = peaks.point > price.point;
    const bool as_full = peaks.point == price.point && stage.number < price.worst_stage;
    if (fuller || as_full) price.worst_stage = stage.number;
    price.join(peaks);
  }
  return price;
}

}  // namespace shardwise
