#include "planner/cost/step/host_copies.h"

#include <gtest/gtest.h>

#include "planner/cost/step/pass_streams.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise::test {
namespace {

/// Blocks of 1 s forward and 2 s backward that each keep 1 GB.
StageTime blocks(std::int32_t count) {
  StageTime stage;
  stage.kinds = 1;
  UnitTime& unit = stage.units[0];
  unit.forward = Seconds(1);
  unit.backward = Seconds(2);
  unit.count = count;
  unit.saved = 1'000'000'000;
  return stage;
}

Seconds exposed(std::int32_t count, double copy, std::int64_t microbatches) {
  Priced p;
  p.cluster.host_link = BytesPerSecond(1e9 / copy);
  const TimeRules rules = time_rules(p.job, p.engine, p.cluster);
  const LeafContext context = {&rules, &p.layout, nullptr, microbatches};
  return exposed_copies(blocks(count), context);
}

// Copies of 3 s. Forward ends at 1, 2, 5 and 8: the third block waits for the first one's copy to
// leave its place at 4, the fourth for the second one's at 7. The last copy has left at 13, they
// are back at 16, 19, 22 and 25, and backward ends at 27 instead of 12.
TEST(ExposedCopies, HoldComputeUpWhereBothPlacesAreTaken) {
  EXPECT_NEAR(exposed(4, 3, 1).value(), 15, 1e-9);
  EXPECT_NEAR(exposed(4, 3, 8).value(), 8 * 15, 1e-9);
}

// Copies of half a second: the last block's, there and back.
TEST(ExposedCopies, AreThoseOfTheLastLayerWhereTheLinkIsFast) {
  EXPECT_NEAR(exposed(4, 0.5, 1).value(), 1, 1e-9);
  EXPECT_NEAR(exposed(1, 0.5, 1).value(), 1, 1e-9);
}

// What a micro-batch needs again for weight gradients that are put off comes again.
TEST(HostCopies, AreThreeWhereWeightGradientsArePutOff) {
  Layout layout{.pp = 4};
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
    layout.schedule = schedule;
    EXPECT_EQ(host_copies(pipeline_slots(layout, 8)), 2);
  }
  layout.schedule = PipelineSchedule::zb_h1;
  EXPECT_EQ(host_copies(pipeline_slots(layout, 8)), 3);
  EXPECT_EQ(host_copies(pipeline_slots({}, 8)), 2);
}

}  // namespace
}  // namespace shardwise::test
