#include "gui/models/timeline_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "simulator/simulate.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

Span span(double start, double active, double end, sim::Paint paint = sim::Paint::forward) {
  Span made;
  made.start = start;
  made.active = active;
  made.end = end;
  made.paint = paint;
  return made;
}

Plan pipeline() {
  Plan plan = test::small_plan();
  plan.layout.pp = 4;
  plan.layout.tp = 2;
  plan.layout.sequence_parallel = true;
  plan.layout.dp_shard = 1;
  plan.layout.zero_stage = 0;
  return plan;
}

TEST(Coverage, OfAColumnIsItsBusyShare) {
  // Columns of one second: half of the first, a tenth and a fifth of the second, all of the third.
  const std::array<Span, 4> spans = {span(0.5, 0.5, 1), span(1, 1, 1.1), span(1.5, 1.5, 1.7),
                                     span(2, 2, 3)};
  const std::vector<Coverage> covered = coverage(spans, {0, 4}, 4);
  const std::array<double, 4> expected = {0.5, 0.3, 1, 0};
  for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(covered[c].share, expected[c], 1e-6) << c;
}

TEST(Coverage, OfALaneOfSpansFarNarrowerThanAPixelIsAsDenseAsTheLane) {
  std::vector<Span> spans;
  for (int i = 0; i < 100'000; ++i) spans.push_back(span(i, i, i + 0.9));
  for (const Coverage& each : coverage(spans, {0, 100'000}, 100)) {
    EXPECT_NEAR(each.share, 0.9, 1.0 / 255);
  }
}

TEST(Coverage, CountsNoWaiting) {
  const std::array<Span, 1> spans = {span(0, 3, 4)};
  const std::vector<Coverage> covered = coverage(spans, {0, 4}, 4);
  EXPECT_EQ(covered[0].share, 0);
  EXPECT_NEAR(covered[3].share, 1, 1e-6);
}

TEST(Coverage, HasThePaintOfMostOfItsTime) {
  const std::array<Span, 3> spans = {span(0, 0, 0.2, sim::Paint::forward),
                                     span(0.2, 0.2, 0.5, sim::Paint::backward),
                                     span(0.5, 0.5, 0.6, sim::Paint::forward)};
  const std::vector<Coverage> covered = coverage(spans, {0, 1}, 1);
  EXPECT_NEAR(covered[0].share, 0.6, 1e-6);
  EXPECT_EQ(covered[0].paint, sim::Paint::forward);  // 0.2 and 0.1 against 0.3, the first of equals
}

TEST(Coverage, SumsToTheBusyTimeOfARandomLane) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> draw(0, 1);
    std::vector<Span> spans;
    double at = 0;
    double busy = 0;
    for (int i = 0; i < 1000; ++i) {
      const double start = at + draw(random) * draw(random);
      const double active = start + 0.2 * draw(random);
      at = active + draw(random) * draw(random) * draw(random);
      spans.push_back(span(start, active, at));
      busy += at - active;
    }
    const std::size_t columns = 37 + seed;
    double sum = 0;
    for (const Coverage& each : coverage(spans, {0, at}, columns)) sum += each.share;
    EXPECT_NEAR(sum * at / static_cast<double>(columns), busy, 1e-4 * busy);
  }
}

TEST(SpansIn, AreThoseThatBruteForceFinds) {
  std::vector<Span> spans;
  for (int i = 0; i < 100; ++i) spans.push_back(span(i, i, i + 0.5));
  for (double from = -1; from < 101; from += 0.25) {
    const TimeRange range{from, from + 1.6};
    const auto inside = std::ranges::count_if(
        spans, [&](const Span& each) { return each.end > range.from && each.start < range.to; });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(spans_in(spans, range).size()), inside) << from;
  }
}

TEST(Zoom, LeavesTheTimeUnderThePointer) {
  const double length = 10;
  TimeRange range{0, length};
  for (const double share : {0.1, 0.5, 0.93}) {
    for (int i = 0; i < 12; ++i) {
      const double before = range.from + share * range.length();
      range = zoomed(range, 0.7, share, length);
      EXPECT_NEAR(range.from + share * range.length(), before, 1e-9);
    }
  }
}

TEST(Zoom, StaysInsideTheStep) {
  const TimeRange whole = zoomed({2, 3}, 100, 0.5, 10);
  EXPECT_EQ(whole, (TimeRange{0, 10}));
  EXPECT_EQ(panned({2, 4}, -100, 10), (TimeRange{0, 2}));
  EXPECT_EQ(panned({2, 4}, 100, 10), (TimeRange{8, 10}));
  EXPECT_GT(zoomed({2, 3}, 1e-30, 0.5, 10).length(), 0);
}

TEST(StepLanes, NeverOverlap) {
  const StepLanes step = step_lanes(pipeline());
  ASSERT_TRUE(step.simulated);
  EXPECT_GT(step.lanes.size(), 4U);
  for (const Lane& lane : step.lanes) {
    for (std::size_t i = 0; i < lane.spans.size(); ++i) {
      EXPECT_LE(lane.spans[i].start, lane.spans[i].active);
      EXPECT_LE(lane.spans[i].active, lane.spans[i].end);
      EXPECT_LE(lane.spans[i].end, step.length * (1 + 1e-12));
      if (i > 0) {
        EXPECT_GE(lane.spans[i].start, lane.spans[i - 1].end) << lane.label;
      }
    }
  }
}

TEST(StepLanes, HaveTheLengthOfTheSimulatedStepAndItsBusyTimes) {
  const Plan plan = pipeline();
  const StepLanes step = step_lanes(plan);
  const sim::Simulation simulation = sim::simulate(plan);
  EXPECT_EQ(step.length, simulation.timeline.length());
  const StepTimeline& timeline = *simulation.report.timeline;
  for (const Lane& lane : step.lanes) {
    if (lane.stream != Stream::compute) continue;
    EXPECT_NEAR(lane.busy, timeline.stages[lane.stage].computing.value(), 1e-9 * step.length);
  }
}

TEST(Exposed, IsWhereSomethingMovesAndNothingIsComputed) {
  const StepLanes step = step_lanes(pipeline());
  for (std::size_t stage = 0; stage < step.exposed.size(); ++stage) {
    constexpr int kSamples = 20'000;
    for (int i = 0; i < kSamples; ++i) {
      const double time = step.length * (i + 0.37) / kSamples;
      bool moves = false;
      bool computes = false;
      for (const Lane& lane : step.lanes) {
        if (lane.stage != stage) continue;
        const bool here = std::ranges::any_of(
            lane.spans, [&](const Span& each) { return each.active <= time && time < each.end; });
        (lane.stream == Stream::compute ? computes : moves) |= here;
      }
      const bool exposed = std::ranges::any_of(step.exposed[stage], [&](const Exposed& each) {
        return each.from <= time && time < each.to;
      });
      ASSERT_EQ(exposed, moves && !computes) << "stage " << stage << " at " << time;
    }
  }
}

}  // namespace
}  // namespace shardwise::view
