#include "gui/models/compare/measured_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/models/compare/compare_model.h"
#include "planner/estimate/estimate.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/trace.h"
#include "tests/gui/made_lane.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

Compared read(const test::Scratch& scratch, const std::string& text) {
  Result<Compared> found = read_compared(scratch.write_bytes("t.json", text));
  EXPECT_TRUE(found.ok()) << to_string(found.problems());
  return *std::move(found);
}

TEST(MeasuredLanes, OfATraceOfTheStepAreItsLanes) {
  const test::Scratch scratch;
  const Plan plan = test::two_stage_plan();
  std::string text;
  sim::write_trace(plan, sim::simulate(plan), 8, [&](std::string_view piece) { text += piece; });
  const CompareView view = test::compared(plan, read(scratch, text));
  const StepLanes step = step_lanes(plan);
  const TimeRange whole{0, step.length};
  // A trace's step begins with its first operation.
  double first = step.length;
  for (const Lane& lane : step.lanes) {
    if (!lane.spans.empty()) first = std::min(first, lane.spans.start.front());
  }
  const OwnRange own{-first, step.length - first};
  for (const Lane& lane : step.lanes) {
    const Lane* const found = view.lanes.find(lane.stage, lane.stream);
    if (lane.spans.empty()) continue;
    ASSERT_NE(found, nullptr) << lane.stage << name_of(lane.stream);
    EXPECT_NEAR(found->busy, lane.busy, 1e-6 * step.length);
    for (std::size_t i = 1; i < found->spans.size(); ++i) {
      EXPECT_LE(found->spans.end[i - 1], found->spans.start[i]);
    }
    EXPECT_EQ(found->spans.kind.front(), lane.spans.kind.front());
    EXPECT_EQ(found->spans.microbatch.front(), lane.spans.microbatch.front());
    for (const float more : busier(lane, *found, own, step.length, whole, 400)) {
      EXPECT_NEAR(more, 0, 2e-3);
    }
  }
}

TEST(MeasuredLanes, OfAnotherPlanAreItsSimulatedStep) {
  const Plan plan = test::two_stage_plan();
  Plan other = plan;
  other.layout.micro_batch_size = 2;
  const CompareView view = test::compared(plan, compared_plan(other, "o.json"));
  const StepLanes step = step_lanes(other);
  EXPECT_DOUBLE_EQ(view.lanes.length, step.length);
  ASSERT_EQ(view.lanes.lanes.size(), step.lanes.size());
}

TEST(MeasuredLanes, OfAProfilersTraceNeverOverlapAndLoseNoTimeThatIsBusy) {
  const test::Scratch scratch;
  const auto kernel = [](const char* name, int stream, int from, int length) {
    return std::string("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"") + name +
           "\",\"pid\":0,\"tid\":" + std::to_string(stream) + ",\"ts\":" + std::to_string(from) +
           ",\"dur\":" + std::to_string(length) + "}";
  };
  const std::string text = "{\"schemaVersion\":1,\"traceEvents\":[" +
                           kernel("ampere_gemm", 7, 0, 100) + "," +
                           kernel("vectorized_elementwise", 9, 50, 100) + "," +
                           kernel("ncclDevKernel_AllGather_RING", 20, 10, 30) + "]}";
  const Plan plan = test::two_stage_plan();
  const CompareView view = test::compared(plan, read(scratch, text));
  ASSERT_EQ(view.lanes.lanes.size(), 2U);
  const std::size_t stage = view.lanes.lanes.front().stage;
  const Lane* const computed = view.lanes.find(stage, Stream::compute);
  ASSERT_NE(computed, nullptr);
  ASSERT_EQ(computed->spans.size(), 2U);
  EXPECT_DOUBLE_EQ(computed->spans.end[0], 100e-6);
  EXPECT_DOUBLE_EQ(computed->spans.start[1], 100e-6);
  EXPECT_NEAR(computed->busy, 150e-6, 1e-12);
  const Lane* const gathered = view.lanes.find(stage, Stream::all_gather);
  ASSERT_NE(gathered, nullptr);
  EXPECT_NEAR(gathered->busy, 30e-6, 1e-12);
}

TEST(OwnRange, PutsMomentsUnderOneAnotherAndBack) {
  const OwnRange own{2, 6};
  EXPECT_DOUBLE_EQ(on_axis(2, own, 10), 0);
  EXPECT_DOUBLE_EQ(on_axis(6, own, 10), 10);
  for (const double moment : {0.0, 2.5, 5.0, 9.0}) {
    EXPECT_DOUBLE_EQ(on_axis(off_axis(moment, own, 10), own, 10), moment);
  }
}

TEST(Busier, SumsToTheDifferenceOfBusyTime) {
  const Lane ours = test::made_lane({{0, 0, 2}, {3, 4, 5}});  // the second waits for a second
  const Lane theirs = test::made_lane({{1, 1, 4}});
  const std::size_t columns = 50;
  const double axis = 5;
  double sum = 0;
  for (const float more : busier(ours, theirs, {0, axis}, axis, {0, axis}, columns)) {
    sum += static_cast<double>(more) * axis / static_cast<double>(columns);
  }
  EXPECT_NEAR(sum, 3 - 3, 1e-6);
  const std::vector<float> more = busier(ours, theirs, {0, axis}, axis, {0, axis}, 5);
  const std::vector<float> wanted = {1, 0, -1, -1, 1};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(more[i], wanted[i], 1e-6) << i;
}

}  // namespace
}  // namespace shardwise::view
