#include "gui/models/question/what_if_model.h"

#include <gtest/gtest.h>

#include "planner/legality/legality.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

TEST(WhatIf, EveryStepOfEverySliderLeavesAPlanThatValidates) {
  const Plan plan = test::small_plan();
  std::size_t steps = 0;
  for (const SliderSection& section : what_if_sliders(plan)) {
    for (const Slider& slider : section.sliders) {
      for (const std::int64_t step : slider.steps) {
        const std::optional<Plan> changed = with_slider(plan, slider, step);
        ASSERT_TRUE(changed) << slider.id << " " << step;
        EXPECT_TRUE(check_plan(*changed).empty()) << slider.id << " " << step;
        ++steps;
      }
    }
  }
  EXPECT_GT(steps, 40U);
}

TEST(WhatIf, ASliderStandsOnTheValueOfThePlan) {
  const Plan plan = test::small_plan();
  for (const SliderSection& section : what_if_sliders(plan)) {
    for (const Slider& slider : section.sliders) {
      ASSERT_LT(slider.at, slider.steps.size()) << slider.id;
      const std::optional<Plan> same = with_slider(plan, slider, slider.steps[slider.at]);
      ASSERT_TRUE(same);
      EXPECT_EQ(to_json(*same), to_json(plan)) << slider.id;
    }
  }
}

TEST(WhatIf, DataParallelismFollowsTheDegrees) {
  const Plan plan = test::small_plan();
  const Slider tp{"tp", "", {1, 2, 4}, {}, 0, "1", Change::layout};
  const std::optional<Plan> changed = with_slider(plan, tp, 4);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->layout.tp, 4);
  EXPECT_EQ(changed->layout.dp(), 2);
  EXPECT_EQ(changed->layout.world(), plan.cluster.gpus);
}

TEST(WhatIf, ReplicasStayReplicasWhenADegreeTakesRanks) {
  Plan plan = test::small_plan();
  plan.layout.dp_shard = 1;
  plan.layout.dp_replicate = 8;
  for (const char* const degree : {"tp", "cp", "pp"}) {
    const Slider slider{degree, "", {1, 2, 4}, {}, 0, "1", Change::layout};
    const std::optional<Plan> changed = with_slider(plan, slider, 2);
    ASSERT_TRUE(changed) << degree;
    EXPECT_EQ(changed->layout.dp_replicate, 4) << degree;
    EXPECT_EQ(changed->layout.dp_shard, 1) << degree;
  }
  const Slider gpus{"gpus", "", {8, 16}, {}, 0, "8", Change::question};
  const std::optional<Plan> grown = with_slider(plan, gpus, 16);
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->layout.dp_replicate, 16);
  EXPECT_EQ(grown->layout.dp_shard, 1);
}

/// Of shards and replicas, how many are others.
int changed_axes(const Layout& a, const Layout& b) {
  return int{a.dp_shard != b.dp_shard} + int{a.dp_replicate != b.dp_replicate};
}

TEST(WhatIf, OfLegalWaysToSplitTheRanksTheOneThatChangesLeastIsTaken) {
  Plan plan = test::two_node_plan();
  std::size_t compared = 0;
  for (const std::int64_t shards : {1, 2, 4}) {
    plan.layout.dp_shard = static_cast<std::int32_t>(shards);
    plan.layout.dp_replicate = static_cast<std::int32_t>(4 / shards);
    const std::vector<SliderSection> sections = what_if_sliders(plan);
    for (const Slider& slider : sections.front().sliders) {
      for (const std::int64_t step : slider.steps) {
        const std::optional<Plan> changed = with_slider(plan, slider, step);
        ASSERT_TRUE(changed) << slider.id << " " << step << " shards " << shards;
        Layout other = changed->layout;
        const std::int64_t dp = other.dp();
        for (std::int64_t shard = 1; shard <= dp; ++shard) {
          if (dp % shard != 0 || slider.id == "dp_replicate") continue;
          other.dp_shard = static_cast<std::int32_t>(shard);
          other.dp_replicate = static_cast<std::int32_t>(dp / shard);
          if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, other)) continue;
          EXPECT_LE(changed_axes(plan.layout, changed->layout), changed_axes(plan.layout, other))
              << slider.id << " " << step;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 30U);
}

TEST(WhatIf, RefusesWhatIsNoPlan) {
  const Plan plan = test::small_plan();
  const Slider tp{"tp", "", {}, {}, 0, "1", Change::layout};
  EXPECT_FALSE(with_slider(plan, tp, 3));
  const Slider batch{"global_batch_size", "", {}, {}, 0, "1", Change::question};
  EXPECT_FALSE(with_slider(plan, batch, 7));
}

}  // namespace
}  // namespace shardwise::view
