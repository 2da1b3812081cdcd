#include "planner/schedule/schedule.h"

#include "planner/schedule/stages.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Without a pipeline: each micro-batch forward and back.
std::vector<PipelinePass> one_stage_passes(std::int32_t chunks, std::int32_t microbatches) {
  std::vector<PipelinePass> order;
  for (std::int32_t m = 0; m < microbatches; ++m) {
    for (std::int32_t c = 0; c < chunks; ++c) {
      order.push_back({LayerPart::forward, static_cast<std::int16_t>(c), m});
    }
    for (std::int32_t c = chunks; c-- > 0;) {
      order.push_back({LayerPart::backward, static_cast<std::int16_t>(c), m});
    }
  }
  return order;
}

}  // namespace

std::vector<PipelinePass> pass_order(const Layout& layout, std::int32_t stage,
                                     std::int64_t num_microbatches) {
  const PipelinePlace place = {layout.pp, layout.vpp, stage,
                               static_cast<std::int32_t>(num_microbatches)};
  if (layout.pp == 1) return one_stage_passes(chunks_of_stage(layout), place.microbatches);
  switch (layout.schedule) {
    case PipelineSchedule::gpipe:
      return gpipe_order(place);
    case PipelineSchedule::looped_bfs:
      return looped_bfs_order(place);
    case PipelineSchedule::one_f_one_b:
      return layout.vpp > 1 ? interleaved_order(place) : one_f_one_b_order(place);
    case PipelineSchedule::zb_h1:
      return zb_h1_order(place);
    case PipelineSchedule::zb_h2:
      return zb_h2_order(place);
    case PipelineSchedule::zb_v:
      return zb_v_order(place);
    case PipelineSchedule::dualpipe:
      return dualpipe_order(place);
    case PipelineSchedule::dualpipe_v:
      return dualpipe_v_order(place);
  }
  return {};
}

}  // namespace shardwise
