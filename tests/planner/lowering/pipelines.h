#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "tests/planner/lowering/sampler.h"
#include "tests/support/pipeline_ways.h"

namespace shardwise::test {

inline const std::vector<Way> kWays = all_ways({2, 3, 4});

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
