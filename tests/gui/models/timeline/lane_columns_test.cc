#include "gui/models/timeline/lane_columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/gui/made_lane.h"

namespace shardwise::view {
namespace {

using test::made_lane;

Lane two_spans() { return made_lane({{10, 10, 40.5}, {60, 60, 61, sim::Paint::backward}}); }

ColourSteps steps(sim::Paint paint, int share) {
  ColourSteps made{};
  made[static_cast<std::size_t>(paint)] = static_cast<std::uint8_t>(share);
  return made;
}

TEST(StepRuns, JoinEqualColumnsAndLeaveOutEmptyOnes) {
  const auto runs = step_runs(two_spans(), ColourBy::kind, {0, 100}, 100);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].first, 10U);
  EXPECT_EQ(runs[0].last, 40U);
  EXPECT_EQ(runs[0].shown, steps(sim::Paint::forward, kWholeColumn));
  EXPECT_EQ(runs[1].shown, steps(sim::Paint::forward, 128));
  EXPECT_EQ(runs[2].first, 60U);
  EXPECT_EQ(runs[2].shown, steps(sim::Paint::backward, kWholeColumn));
}

TEST(StepRuns, AreTheSharesOfEveryColumn) {
  std::vector<test::MadeSpan> spans;
  for (int i = 0; i < 500; ++i) {
    const double from = i + 0.01 * (i % 7);
    spans.push_back({from, from, from + 0.3 + 0.001 * i,
                     i % 3 == 0 ? sim::Paint::forward : sim::Paint::backward});
  }
  const Lane lane = made_lane(spans);
  constexpr std::size_t kColumns = 211;
  const TimeRange range{3.3, 480};
  std::vector<ColourSteps> drawn(kColumns);
  for (const auto& [first, last, shown] : step_runs(lane, ColourBy::kind, range, kColumns)) {
    for (std::size_t c = first; c < last; ++c) drawn[c] = shown;
  }
  const std::vector<Coverage> covered = coverage(lane, ColourBy::kind, range, kColumns);
  for (std::size_t c = 0; c < kColumns; ++c) {
    for (std::size_t k = 0; k < kColours; ++k) {
      EXPECT_EQ(drawn[c][k], std::lround(static_cast<double>(covered[c].shares[k]) * kWholeColumn));
    }
  }
}

TEST(DrawnColumns, AreFoundAgainWhereAnythingOfThemChanges) {
  const auto step_of = [](Lane lane) {
    auto step = std::make_shared<StepLanes>();
    step->lanes.push_back(std::move(lane));
    return step;
  };
  auto step = step_of(two_spans());
  DrawnColumns drawn;
  const auto last_of = [&](TimeRange range, double columns, ColumnPart part) {
    drawn.begin(step, ColourBy::kind, range, columns);
    return drawn.of(step->lanes[0], part).back().last;
  };
  EXPECT_EQ(last_of({0, 100}, 100, {0, 100}), 61U);
  EXPECT_EQ(last_of({0, 100}, 100, {0, 50}), 41U);
  EXPECT_EQ(last_of({0, 100}, 100, {0, 100}), 61U);
  EXPECT_EQ(last_of({0, 100}, 200, {0, 200}), 122U);
  EXPECT_EQ(last_of({0, 200}, 200, {0, 200}), 61U);
  step = step_of(made_lane({{0, 0, 5}}));
  EXPECT_EQ(last_of({0, 200}, 200, {0, 200}), 5U);
  drawn.begin(step, ColourBy::microbatch, {0, 200}, 200);
  const ColourSteps last = drawn.of(step->lanes[0], {0, 200}).front().shown;
  EXPECT_EQ(last.back(), kWholeColumn);  // of the whole step
}

}  // namespace
}  // namespace shardwise::view
