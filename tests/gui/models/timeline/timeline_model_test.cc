#include "gui/models/timeline/timeline_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gui/models/timeline/readout.h"
#include "planner/recorded/stage_timeline.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/step_report.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

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

TEST(Zoom, FocusesOnASpanInItsMiddle) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  const Lane& lane = step.lanes.front();
  const std::size_t span = lane.spans.size() / 2;
  const TimeRange close = focused(lane, span, step.length);
  EXPECT_NEAR((close.from + close.to) / 2, (lane.spans.start[span] + lane.spans.end[span]) / 2,
              1e-12);
  EXPECT_LT(lane.spans.end[span] - lane.spans.start[span], close.length());
}

TEST(StepLanes, NeverOverlap) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  ASSERT_TRUE(step.simulated);
  EXPECT_GT(step.lanes.size(), 4U);
  for (const Lane& lane : step.lanes) {
    const sim::SpanColumns& spans = lane.spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_LE(spans.start[i], spans.active_start[i]);
      EXPECT_LE(spans.active_start[i], spans.end[i]);
      EXPECT_LE(spans.end[i], step.length * (1 + 1e-12));
      if (i > 0) {
        EXPECT_GE(spans.start[i], spans.end[i - 1]) << lane.label;
      }
    }
  }
}

TEST(StepLanes, HaveTheLengthOfTheSimulatedStepAndItsBusyTimes) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  const sim::Simulation simulation = sim::simulate(test::four_stage_plan());
  EXPECT_EQ(step.length, simulation.timeline.length());
  const StepTimeline& timeline = *simulation.report.timeline;
  for (const Lane& lane : step.lanes) {
    if (lane.stream != Stream::compute) continue;
    EXPECT_NEAR(lane.busy, timeline.stages[lane.stage].computing.value(), 1e-9 * step.length);
  }
}

/// Exposed seconds of the tile.
double exposed_of(const StepReport& report) {
  double sum = 0;
  for (const AxisTime& axis : report.by_axis) sum += axis.exposed.value();
  return sum;
}

/// The strip of the stage that a report takes its parts of.
const ExposedStrip& busiest_strip(const StepLanes& step) {
  return step.exposed[busiest_of(step.report->timeline->stages)];
}

// Tensor parallel communication is inside the passes of layers, on no stream of its own.
TEST(StepLanes, HaveTheExposedSecondsOfTheTile) {
  for (const Plan& plan : {test::small_plan(), test::two_stage_plan(), test::four_stage_plan(),
                           test::two_node_plan()}) {
    const StepLanes step = step_lanes(plan);
    const double expected = exposed_of(*step.report);
    ASSERT_GT(expected, 0);
    EXPECT_NEAR(busiest_strip(step).whole(), expected, 1e-5 * expected);
  }
}

// A stretched axis is exposed for as long as the stretched report says.
TEST(StepLanes, HaveTheExposedSecondsOfAStretchedAxis) {
  const Plan plan = test::two_node_plan();
  const double planned = exposed_of(*step_lanes(plan).report);
  const StepLanes step = step_lanes(plan, {0, {{TrafficAxis::tp, 0.5}}});
  const double expected = exposed_of(*step.report);
  EXPECT_LT(expected, planned);
  EXPECT_NEAR(busiest_strip(step).whole(), expected, 1e-5 * expected);
}

// One number: what is read out of the step is the tile's, of the same stage.
TEST(StepLanes, ReadOutTheExposedSecondsOfTheTile) {
  for (const Plan& plan : {test::two_stage_plan(), test::four_stage_plan()}) {
    const StepLanes step = step_lanes(plan);
    const Readout whole = read_out(step, {0, step.length});
    EXPECT_EQ(whole.exposed_stage, busiest_of(step.report->timeline->stages));
    EXPECT_THAT(text_of(whole),
                testing::HasSubstr("exposed " + format_seconds(Seconds(exposed_of(*step.report)))));
  }
}

TEST(StepLanes, NameTheSpanThatIsExposedLongest) {
  const StepLanes step = step_lanes(test::two_node_plan());
  ASSERT_TRUE(step.worst);
  const Lane& lane = *step.find(step.worst->span.lane);
  const std::size_t span = step.worst->span.span;
  const double exposed = lane.exposed_in(span, span + 1);
  EXPECT_GT(exposed, 0);
  EXPECT_THAT(step.worst->text, testing::HasSubstr(" exposed of "));
  EXPECT_THAT(span_text(step, lane, span), testing::HasSubstr(" exposed of "));
}

TEST(StepLanes, HaveTheExposedSecondsOfTheirStreams) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  for (std::size_t s = 0; s < step.exposed.size(); ++s) {
    double expected = 0;
    for (const StreamTime& stream : step.report->timeline->stages[s].streams) {
      expected += stream.exposed.value();
    }
    ASSERT_GT(expected, 0);
    const Lane& computing = *step.find({s, Stream::compute});
    expected += computing.exposed_in(0, computing.spans.size());
    EXPECT_NEAR(step.exposed[s].whole(), expected, 1e-6 * step.length);
    double drawn = 0;
    constexpr std::size_t kColumns = 1437;
    for (const auto& [first, last, streams] :
         exposed_runs(step.exposed[s], {0, step.length}, kColumns)) {
      drawn +=
          static_cast<double>(streams) * static_cast<double>(last - first) * step.length / kColumns;
    }
    EXPECT_NEAR(drawn, expected, 1e-5 * expected);
  }
}

TEST(StepLanes, OfAnyRankAreOfItsPipeline) {
  const Plan plan = test::four_stage_plan();
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    const StepLanes step = step_lanes(plan, {rank, {}});
    EXPECT_EQ(step.ranks, group_ranks(plan.layout, GroupKind::pp, rank));
    EXPECT_TRUE(std::ranges::find(step.ranks, rank) != step.ranks.end());
    for (const Lane& lane : step.lanes) EXPECT_EQ(lane.rank, step.ranks[lane.stage]);
  }
}

TEST(StepLanes, AreNotSimulatedOnceTheyAreAskedToStop) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(step_lanes(test::four_stage_plan(), {}, stop.get_token()).simulated);
}

TEST(StepLanes, OfAStretchedKindAreTheSimulationOfItsPrices) {
  const Plan plan = test::small_plan();  // in the small pipeline the host is what takes long
  const sim::PriceScale scale{sim::Paint::backward, 0.5};
  sim::SimulationOptions options;
  options.scales = {scale};
  const sim::Simulation expected = sim::simulate(plan, options);
  const StepLanes step = step_lanes(plan, {0, {scale}});
  EXPECT_EQ(step.length, expected.timeline.length());
  EXPECT_LT(step.length, step_lanes(plan).length);
  for (const Lane& lane : step.lanes) {
    const std::size_t base = expected.actor_of(lane.stage).base;
    for (std::size_t i = 0; i < lane.spans.size(); ++i) {
      ASSERT_EQ(lane.spans.end[i], expected.timeline.end[base + lane.spans.operation[i]]);
    }
  }
}

TEST(CriticalPath, OfLanesHasNoGapAndIsAsLongAsTheReports) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  double seconds = 0;
  for (std::size_t i = 0; i < step.lanes.size(); ++i) {
    const sim::SpanColumns& spans = step.lanes[i].spans;
    EXPECT_TRUE(std::ranges::is_sorted(step.path[i]));
    for (const std::uint32_t span : step.path[i]) {
      seconds += spans.end[span] - spans.active_start[span];
    }
  }
  EXPECT_NEAR(seconds, step.report->timeline->critical_path.value(), 1e-9 * step.length);
}

TEST(WaitedFor, EndsBeforeTheSpanIsActive) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  int found = 0;
  for (const Lane& lane : step.lanes) {
    for (std::size_t i = 0; i < lane.spans.size(); i += 7) {
      for (const ChosenSpan& each : waited_for(step, {name_of(lane), i})) {
        const Lane* const other = step.find(each.lane);
        ASSERT_NE(other, nullptr);
        const bool meets = other->stage != lane.stage;  // the other end of a message
        EXPECT_LE(meets ? other->spans.active_start[each.span] : other->spans.end[each.span],
                  lane.spans.active_start[i] * (1 + 1e-12));
        ++found;
      }
    }
  }
  EXPECT_GT(found, 10);
}

TEST(Search, FindsTheSpansOfANameOneAfterTheOtherAndAround) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  std::set<std::pair<LaneName, std::size_t>> found;
  std::optional<ChosenSpan> chosen;
  while (true) {
    chosen = next_match(step, "fwd.layer3.", chosen);
    ASSERT_TRUE(chosen);
    EXPECT_NE(span_name(step, *step.find(chosen->lane), chosen->span).find("fwd.layer3."),
              std::string::npos);
    if (!found.insert({chosen->lane, chosen->span}).second) break;
  }
  const auto microbatches = static_cast<std::size_t>(step.simulation->program.num_microbatches);
  EXPECT_EQ(found.size(), microbatches);
  EXPECT_FALSE(next_match(step, "no such name", std::nullopt));
}

TEST(MemoryCourse, PeaksWhereTheClockDoesToTheByte) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  const MemoryCourseView& course = step.memory;
  EXPECT_EQ(course.allocated.value(), step.simulation->memory[course.stage].peak_allocated);
  EXPECT_EQ(course.total(course.peak), course.allocated);
  for (std::size_t c = 0; c < course.columns.size(); ++c) {
    EXPECT_LE(course.total(c), course.allocated);
  }
  const double place = course.peak_at.value() / step.length;
  EXPECT_EQ(course.peak,
            static_cast<std::size_t>(place * static_cast<double>(course.columns.size())));
}

TEST(MemoryCourse, ListsTheBuffersThatAreAliveAtThePeak) {
  const StepLanes step = step_lanes(test::four_stage_plan());
  Bytes sum;
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    for (const LiveLine& line :
         live_lines(*step.report, step.memory.stage, static_cast<MemoryGroup>(g))) {
      sum += line.bytes;
    }
  }
  Bytes alive;
  for (const std::uint32_t buffer : step.simulation->memory[step.memory.stage].alive) {
    alive += Bytes(step.simulation->program.stages[step.memory.stage].buffers[buffer].bytes);
  }
  EXPECT_EQ(sum, alive);
  EXPECT_GT(sum, Bytes(0));
}

}  // namespace
}  // namespace shardwise::view
