#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise::test {

/// A way through a pipeline.
struct Way {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t vpp = 1;
};

inline Layout pipeline_layout(PipelineSchedule schedule, std::int32_t pp, std::int32_t vpp = 1) {
  Layout layout;
  layout.schedule = schedule;
  layout.pp = pp;
  layout.vpp = vpp;
  return layout;
}

/// Every schedule that there is over one chunk a stage, and over `chunks` where it takes them.
/// Looped BFS over one chunk is left out, as it is GPipe.
inline std::vector<Way> all_ways(std::initializer_list<std::int32_t> chunks) {
  std::vector<Way> ways;
  for (const PipelineSchedule schedule : values_of<PipelineSchedule>()) {
    const ScheduleFacts facts = facts_of(schedule);
    if (!(facts.takes_vpp && facts.forward_first)) ways.push_back({schedule, 1});
    if (!facts.takes_vpp) continue;
    for (const std::int32_t vpp : chunks) ways.push_back({schedule, vpp});
  }
  return ways;
}

}  // namespace shardwise::test
