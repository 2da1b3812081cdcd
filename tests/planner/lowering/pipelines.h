#pragma once

#include <cstdint>
#include <random>

#include "planner/spec/plan.h"
#include "tests/planner/lowering/sampler.h"

namespace shardwise::test {

/// A way through a pipeline.
struct Way {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t vpp = 1;
};
inline constexpr Way kWays[] = {
    {PipelineSchedule::one_f_one_b, 1}, {PipelineSchedule::one_f_one_b, 2},
    {PipelineSchedule::one_f_one_b, 3}, {PipelineSchedule::one_f_one_b, 4},
    {PipelineSchedule::gpipe, 1},       {PipelineSchedule::looped_bfs, 2},
    {PipelineSchedule::looped_bfs, 3},  {PipelineSchedule::zb_h1, 1},
    {PipelineSchedule::zb_h2, 1},       {PipelineSchedule::zb_v, 1},
    {PipelineSchedule::dualpipe, 1},    {PipelineSchedule::dualpipe_v, 1}};

/// Layouts of an engine that go a way, as many of them with ends of their own size as without.
template <class Visit>
int draw_pipelines(Plan& plan, const Way& way, int count, std::uint32_t seed, Visit&& visit) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  Sampler sampler(question, seed);
  std::mt19937 random(seed);
  int drawn = 0;
  for (int tries = 0; tries < 400'000 && drawn < count; ++tries) {
    plan.layout = sampler.draw();
    if (plan.layout.pp == 1) continue;
    plan.layout.schedule = way.schedule;
    plan.layout.vpp = way.vpp;
    plan.layout.first_stage_layers = plan.layout.last_stage_layers = 0;
    if (drawn % 2 == 1) {
      plan.layout.first_stage_layers = static_cast<std::int32_t>(random() % 8);
      plan.layout.last_stage_layers = static_cast<std::int32_t>(random() % 8);
      if (plan.layout.first_stage_layers + plan.layout.last_stage_layers == 0) continue;
    }
    if (!sampler.legal(plan.layout)) continue;
    ++drawn;
    visit();
  }
  return drawn;
}

}  // namespace shardwise::test
