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
      return std::max(fill - pace.weight_gradient * (3 * others), pace.forward * others);
    case PipelineSchedule::zb_v: {
      const Seconds half =
          std::max(pace.forward, pace.backward - pace.weight_gradient) * (others / 2);
      return std::max(fill - pace.weight_gradient * (3 * others), half);
    }
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

PipelineMessages pipeline_messages(const Layout& layout, std::int64_t num_microbatches,
                                   double neighbours) {
  if (layout.pp <= 1) return {};
  const double p = layout.pp;
  const auto m = static_cast<double>(num_microbatches);
  const double fill = 2 * (p - 1);
  switch (layout.schedule) {
    case PipelineSchedule::one_f_one_b: {
      if (layout.vpp == 1) return {neighbours * m + fill + 1 - 2 * neighbours, 0};
      const double all = 2 * m * layout.vpp;
      const double alone = std::min(all, 2 * (p * layout.vpp - 1));
      return {alone, all - alone};
    }
    case PipelineSchedule::gpipe:
      return {2 * m + fill - 2, 0};
    case PipelineSchedule::looped_bfs: {
      const double all = 2 * m * layout.vpp;
      // A micro-batch goes round at once where there are no more than stages.
      const double alone = std::min(all, m > p ? fill : 2 * (p * layout.vpp - 1));
      return {alone, all - alone};
    }
    case PipelineSchedule::zb_h1:
      return {2 * fill, 2 * m - fill};
    case PipelineSchedule::zb_h2:
      return {p - 1, 2 * m};
    case PipelineSchedule::zb_v:
      return {5 * (p - 1) - 2, 4 * m};
    case PipelineSchedule::dualpipe:
      return {5 * p / 2 - 3, 2 * m};
    case PipelineSchedule::dualpipe_v:
      return {5 * p - 3, 4 * m};
  }
  return {};
}

}  // namespace shardwise
