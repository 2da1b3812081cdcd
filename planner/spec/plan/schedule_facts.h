#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Facts of a pipeline schedule whatever the layout, which are asked in many places. The order
/// of passes of each is planner/cost/schedule_*.cc; how many they hold,
/// planner/schedule/held_passes.cc.
struct ScheduleFacts {
  // A stage holds --vpp chunks of the model and goes round over them; else one, or the two of a V.
  bool takes_vpp = false;
  // The second chunk of a stage lies on the way back up the stages that the first went down.
  bool v_shaped = false;
  // Micro-batches enter at both ends, each end with half of them and a copy of the model.
  bool copies_model = false;
  // A forward and a backward pass run as a pair, communication of one beside compute of the other.
  bool pairs_passes = false;
  // The backward pass is split: weight gradients are deferred to fill bubbles.
  bool splits_backward = false;
  // All forward passes of a chunk come before its first backward pass.
  bool forward_first = false;
  // Receives are posted ahead of the pass that ends before they are needed, with one chunk too.
  // docs/schedules.md has the sources.
  bool receives_ahead = true;
  // Fewest micro-batches a stage for which bubble and memory are what the schedule's paper says;
  // one less in all where `less_one`. 0 = any number.
  std::int32_t microbatches_a_stage = 0;
  bool less_one = false;

  constexpr std::int64_t fewest_microbatches(std::int64_t pp) const {
    return microbatches_a_stage == 0 ? 1 : microbatches_a_stage * pp - (less_one ? 1 : 0);
  }
};

constexpr ScheduleFacts facts_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::one_f_one_b:
      return {.takes_vpp = true, .receives_ahead = false};
    case PipelineSchedule::gpipe:
      return {.forward_first = true, .receives_ahead = false};
    case PipelineSchedule::looped_bfs:
      return {.takes_vpp = true, .forward_first = true};
    case PipelineSchedule::zb_h1:
      return {.splits_backward = true};
    case PipelineSchedule::zb_h2:
      return {.splits_backward = true, .microbatches_a_stage = 2, .less_one = true};
    case PipelineSchedule::zb_v:
      return {.v_shaped = true, .splits_backward = true, .microbatches_a_stage = 2};
    case PipelineSchedule::dualpipe:
      return {
          .v_shaped = true, .copies_model = true, .pairs_passes = true, .microbatches_a_stage = 2};
    case PipelineSchedule::dualpipe_v:
      return {.v_shaped = true, .pairs_passes = true, .microbatches_a_stage = 2};
  }
  return {};
}

constexpr ScheduleFacts facts_of(const Layout& layout) { return facts_of(layout.schedule); }

/// Whether every stage holds parts of two copies of the model.
constexpr bool copies_model(const Layout& layout) {
  return layout.pp > 1 && facts_of(layout).copies_model;
}

/// Chunks of the model on a stage, of both copies where there are two.
constexpr std::int32_t chunks_of_stage(const Layout& layout) {
  return facts_of(layout).v_shaped ? 2 : layout.vpp;
}

/// Chunks of the model on a stage, of one copy of it.
constexpr std::int32_t chunks_of_copy(const Layout& layout) {
  return chunks_of_stage(layout) / (facts_of(layout).copies_model ? 2 : 1);
}

/// Whether receives are posted ahead of the pass that ends before they are needed.
constexpr bool posts_receives_ahead(const Layout& layout) {
  return layout.vpp > 1 || facts_of(layout).receives_ahead;
}

/// Whether one_f_one_b goes round over several chunks.
constexpr bool is_interleaved(const Layout& layout) {
  return layout.vpp > 1 && layout.schedule == PipelineSchedule::one_f_one_b;
}

}  // namespace shardwise
