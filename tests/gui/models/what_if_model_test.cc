#include "gui/models/what_if_model.h"

#include <gtest/gtest.h>

#include "planner/cost/legality.h"
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

TEST(WhatIf, RefusesWhatIsNoPlan) {
  const Plan plan = test::small_plan();
  const Slider tp{"tp", "", {}, {}, 0, "1", Change::layout};
  EXPECT_FALSE(with_slider(plan, tp, 3));
  const Slider batch{"global_batch_size", "", {}, {}, 0, "1", Change::question};
  EXPECT_FALSE(with_slider(plan, batch, 7));
}

}  // namespace
}  // namespace shardwise::view
