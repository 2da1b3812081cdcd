#include <gtest/gtest.h>

#include "planner/search/enumerate.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

TEST(Lower, MakesAProgramOfOneStageForEveryEngine) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    for (const int zero_stage : engine.zero_stages) {
      for (const std::int64_t m : {1, 3}) {
        Layout layout;
        layout.dp_shard = 8;
        layout.zero_stage = static_cast<std::int8_t>(zero_stage);
        const Plan plan = small_plan(engine, layout, m);
        for (const StepKind step : {StepKind::steady, StepKind::first}) {
          EXPECT_EQ(problems_of(lower(plan, Granularity::layer, step)), "")
              << name << " ZeRO-" << zero_stage << " m " << m;
        }
      }
    }
  }
}

TEST(Lower, MakesAProgramOfEverySchedule) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    if (!engine.pipeline) continue;
    for (const PipelineSchedule schedule : engine.schedules) {
      for (const std::int32_t vpp : {1, 2}) {
        if (vpp > 1 && schedule != PipelineSchedule::one_f_one_b) continue;
        for (const int zero_stage : engine.zero_stages) {
          Layout layout;
          layout.pp = 4;
          layout.vpp = vpp;
          layout.dp_shard = 2;
          layout.schedule = schedule;
          layout.zero_stage = static_cast<std::int8_t>(zero_stage);
          const Plan plan = small_plan(engine, layout, 8, 16);
          EXPECT_EQ(problems_of(lower(plan)), "") << name << " ZeRO-" << zero_stage << " "
                                                  << static_cast<int>(schedule) << " x " << vpp;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::test
