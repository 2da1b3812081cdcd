#include "gui/models/explore/neighbour_model.h"

#include <gtest/gtest.h>

#include "gui/models/session/session.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class Neighbours : public testing::Test {
 protected:
  StepReport report(const Layout& layout) const {
    return estimate(plan_.model, plan_.cluster, plan_.job, plan_.engine, layout);
  }
  Plan plan_ = test::small_plan();
};

TEST_F(Neighbours, GainWhatAFreshEstimateSays) {
  const StepReport own = report(plan_.layout);
  const std::vector<NeighbourBar> bars = neighbour_bars(plan_, own.step_time, {});
  ASSERT_GT(bars.size(), 5U);
  for (const NeighbourBar& bar : bars) {
    EXPECT_TRUE(
        check_layout(plan_.model, plan_.cluster, plan_.job, plan_.engine, bar.layout).empty())
        << bar.text;
    const StepReport other = report(bar.layout);
    EXPECT_EQ(bar.memory, other.verdict.point) << bar.text;
    EXPECT_EQ(bar.memory_gained, own.verdict.point - other.verdict.point) << bar.text;
    EXPECT_NEAR(bar.time_gained.value(), (own.step_time - other.step_time).value(),
                1e-9 * own.step_time.value())
        << bar.text;
    EXPECT_EQ(bar.fit, other.verdict.fit) << bar.text;
  }
}

TEST_F(Neighbours, AreInTheOrderOfTheTimeTheyGain) {
  const std::vector<NeighbourBar> bars = neighbour_bars(plan_, report(plan_.layout).step_time, {});
  for (std::size_t i = 1; i < bars.size(); ++i) {
    if (bars[i].fit == bars[i - 1].fit) {
      EXPECT_LE(bars[i].time_gained, bars[i - 1].time_gained);
    }
  }
}

TEST_F(Neighbours, SayWhatChanges) {
  NeighbourBar bar;
  bar.time_gained = Seconds(1.5);
  bar.memory_gained = Bytes(-(std::int64_t{2} << 30));
  EXPECT_EQ(change_text(bar), "-1.50 s");
  EXPECT_EQ(memory_change_text(bar), "+2.00 GiB");
}

TEST_F(Neighbours, BecomeThePlanWhenTheyAreTaken) {
  Session session(plan_);
  session.settle();
  const Layout layout = session.state().neighbours[1].layout;
  session.take_neighbour(1);
  EXPECT_EQ(session.state().plan.layout, layout);
}

}  // namespace
}  // namespace shardwise::view
