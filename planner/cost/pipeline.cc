#include "planner/cost/pipeline.h"

#include <algorithm>

namespace shardwise {

Seconds pipeline_bubble(PipelineSchedule schedule, std::int32_t pp, std::int32_t vpp,
                        std::int64_t num_microbatches, const PipelinePace& pace) {
  if (pp <= 1) return Seconds(0);
  const Seconds each = pace.forward + pace.backward;
  const Seconds fill = std::max(Seconds(0), pace.all - each);
  const double others = pp - 1;
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return fill;
    case PipelineSchedule::one_f_one_b: {
      Seconds idle = fill / vpp;
      const std::int64_t left = num_microbatches % pp;
      if (vpp > 1 && left > 0) {
        idle += each * (static_cast<double>((vpp - 1) * (pp - left)) / vpp);
      }
      return idle;
    }
    case PipelineSchedule::looped_bfs: {
      Seconds idle = fill / vpp;
      if (num_microbatches < pp) {
        idle += each * (static_cast<double>((vpp - 1) * (pp - num_microbatches)) / vpp);
      }
      return idle;
    }
    case PipelineSchedule::zb_h1:
      return std::max(Seconds(0), fill - pace.weight_gradient * (2 * others));
    case PipelineSchedule::zb_h2:
    case PipelineSchedule::zb_v:
      return std::max(Seconds(0), fill - pace.weight_gradient * (3 * others));
    case PipelineSchedule::dualpipe: {
      const Seconds step = each + pace.backward - 3.0 * pace.weight_gradient;
      return std::max(Seconds(0), step * std::max(0.0, pp / 2.0 - 1));
    }
    case PipelineSchedule::dualpipe_v: {
      const Seconds step = each + pace.backward - 3.0 * pace.weight_gradient;
      return std::max(Seconds(0), step * (others / 2));
    }
  }
  return fill;
}

PipelineMessages pipeline_messages(std::int32_t pp, std::int32_t vpp,
                                   std::int64_t num_microbatches) {
  if (pp <= 1) return {};
  const auto m = static_cast<double>(num_microbatches);
  const double fill = 2.0 * (pp - 1.0);
  if (vpp <= 1) return {2 * m + fill, 0};
  const double all = m * vpp;
  const double warm_up = std::min(all, fill + (vpp - 1.0) * pp);
  return {2 * warm_up, 2 * (all - warm_up)};
}

}  // namespace shardwise
