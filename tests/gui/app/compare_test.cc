// Predicted beside measured, as it is drawn: by probes and single pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "gui/models/compare/compare_model.h"
#include "gui/models/memory/memory_model.h"
#include "simulator/clock/simulate.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

/// A stage and a session in this process.
class Drawn : public testing::Test {
 protected:
  void draw() { draw_settled(stage_, session_, size_); }
  void compare(Compared other) {
    session_.compare_with(std::make_shared<const Compared>(std::move(other)));
  }
  Probes::Place at(std::string_view name) const {
    const auto place = stage_.probes().find(name);
    EXPECT_TRUE(place) << name;
    return place.value_or(Probes::Place{});
  }
  bool there(std::string_view name) const { return stage_.probes().find(name).has_value(); }
  ImVec2 size_{1280, 800};
  Session session_{test::small_plan(), Timing::fitting};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(Drawn, TicksStandAtTheirValueAndNoLabelIsUnderOne) {
  StepReport measured = sim::simulate(session_.state().plan).report;
  for (StageMemory& stage : measured.stages) {
    for (Ledger& phase : stage.phases) {
      phase[MemoryCategory::activations] += phase.total().value() / 40;  // a little over the bar
    }
  }
  compare(compared_report(measured, "m.json"));
  session_.set_workspace(Workspace::memory);
  draw();
  const auto ticks = memory_ticks(session_.state().report, measured, MemoryBy::phase);
  const auto stacks = memory_stacks(session_.state().report, MemoryBy::phase);
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const Probes::Place bar = at("memory." + stacks[i].label);
    const Probes::Place tick = at("memory.tick." + stacks[i].label);
    ASSERT_TRUE(ticks[i]);
    const double pixels = static_cast<double>(bar.most.y - bar.least.y) /
                          static_cast<double>(stacks[i].total.value());
    const double wanted =
        static_cast<double>(bar.most.y) - static_cast<double>(ticks[i]->at.value()) * pixels;
    EXPECT_NEAR(static_cast<double>(tick.centre().y), wanted, 1.5) << stacks[i].label;
    const auto label = stage_.probes().find("memory.tick." + stacks[i].label + ".label");
    if (label) {
      EXPECT_GT(label->least.x, tick.most.x);
    }
  }
}

TEST_F(Drawn, TilesSayWhatIsComparedAndTheListHasARowForEachDifference) {
  draw();
  EXPECT_FALSE(there("compare"));
  StepReport measured = sim::simulate(session_.state().plan).report;
  measured.origin = "measured";
  for (OperationTime& each : measured.timeline->operations) each.time = each.time * 1.1;
  compare(compared_report(measured, "m.json"));
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    session_.set_workspace(static_cast<Workspace>(w));
    draw();
    EXPECT_TRUE(there("compare")) << kWorkspaceNames[w];
    EXPECT_TRUE(there("summary.step.beside")) << kWorkspaceNames[w];
    EXPECT_TRUE(there("compare.row.1")) << kWorkspaceNames[w];
    EXPECT_TRUE(there("compare.calibrate")) << kWorkspaceNames[w];
  }
  EXPECT_EQ(run_command(session_, "compare.toggle"), "");
  draw();
  EXPECT_FALSE(there("summary.step.beside"));
}

TEST_F(Drawn, EveryViewHasThePlaceOfWhatIsCompared) {
  size_ = {1600, 1000};
  compare(compared_plan(session_.state().plan, "same.json"));
  draw();
  const auto middle = [&](std::string_view name) { return at(name).centre(); };
  EXPECT_NEAR(middle("trade.compared").x, middle("trade.selected").x, 1);
  session_.set_workspace(Workspace::mesh);
  draw();
  EXPECT_TRUE(there("axes.dp.tick"));
  session_.set_workspace(Workspace::scaling);
  draw();
  EXPECT_TRUE(there("scaling.compared"));
}

TEST_F(Drawn, MeasuredLanesLieUnderTheirPredictedOnesAndNeverOverThem) {
  Plan other = session_.state().plan;
  other.layout.micro_batch_size = 2;
  compare(compared_plan(other, "o.json"));
  session_.set_workspace(Workspace::timeline);
  draw();
  std::size_t lanes = 0;
  for (const auto& [name, place] : stage_.probes().all()) {
    if (!name.starts_with("timeline.") || !name.ends_with(".measured")) continue;
    ++lanes;
    const Probes::Place predicted = at(name.substr(0, name.size() - 9));
    EXPECT_GE(place.least.y, predicted.most.y);
    EXPECT_FLOAT_EQ(place.least.x, predicted.least.x);
    EXPECT_FLOAT_EQ(place.most.x, predicted.most.x);
    for (const auto& [each, lane] : stage_.probes().all()) {
      const bool is_lane = each.starts_with("timeline.") && std::ranges::count(each, '.') == 2 &&
                           each != "timeline.canvas";
      if (!is_lane) continue;
      EXPECT_TRUE(lane.most.y <= place.least.y || lane.least.y >= place.most.y)
          << each << " over " << name;
    }
  }
  EXPECT_GT(lanes, 1U);
  EXPECT_TRUE(there("timeline.0.compute.difference"));
  EXPECT_EQ(run_command(session_, "compare.close"), "");
  draw();
  EXPECT_FALSE(there("timeline.0.compute.measured"));
}

TEST_F(Drawn, TheStripIsEmptyWhereNothingDiffersAndHasColourWhereItDoes) {
  session_.set_workspace(Workspace::timeline);
  // Pixels of the strip that are not as the empty row below it.
  const auto coloured = [&] {
    draw();
    const Probes::Place strip = at("timeline.0.compute.difference");
    const Image picture = stage_.picture(session_);
    const auto pixel = [&](std::size_t x, float y) {
      const std::uint8_t* const at = picture.at(static_cast<int>(x), static_cast<int>(y));
      return std::array{at[0], at[1], at[2]};
    };
    std::size_t count = 0;
    const auto last = static_cast<std::size_t>(strip.most.x);
    for (auto x = static_cast<std::size_t>(strip.least.x); x < last; ++x) {
      count += pixel(x, strip.least.y + 1) != pixel(x, strip.most.y) ? 1U : 0U;
    }
    return count;
  };
  compare(compared_plan(session_.state().plan, "same.json"));
  EXPECT_EQ(coloured(), 0U);
  Plan other = session_.state().plan;
  other.layout.tp = 2;
  other.layout.dp_shard = 4;
  compare(compared_plan(other, "other.json"));
  EXPECT_GT(coloured(), 100U);
}

TEST_F(Drawn, WhatIsBeyondTheTimelineIsSaidUntilTheWholeStepIsDrawn) {
  Plan other = session_.state().plan;
  other.job.global_batch_size *= 2;
  compare(compared_plan(other, "longer.json"));
  size_ = {1600, 1000};
  session_.set_workspace(Workspace::timeline);
  draw();
  EXPECT_TRUE(there("compare.beyond"));
  EXPECT_EQ(run_command(session_, "compare.fit"), "");
  draw();
  EXPECT_FALSE(there("compare.beyond"));
}

TEST_F(Drawn, AWholeStepOrAPartOfItIsDrawnUnderThePredictedOne) {
  EXPECT_EQ(run_command(session_, "compare.fit"), "nothing is compared");
  Plan other = session_.state().plan;
  other.layout.micro_batch_size = 2;
  compare(compared_plan(other, "o.json"));
  session_.settle();
  const CompareState& state = session_.state().compare;
  const double axis = session_.state().lanes->length;
  EXPECT_DOUBLE_EQ(state.own_range(axis).to, axis);  // the same seconds
  EXPECT_EQ(run_command(session_, "compare.fit"), "");
  EXPECT_DOUBLE_EQ(state.own_range(axis).to, state.view->lanes.length);
  EXPECT_EQ(run_command(session_, "compare.fit"), "");
  EXPECT_DOUBLE_EQ(state.own_range(axis).to, axis);
  EXPECT_EQ(run_command(session_, "compare.range 0.01 0.02"), "");
  EXPECT_DOUBLE_EQ(state.own_range(axis).from, 0.01);
  EXPECT_EQ(run_command(session_, "compare.range 2 1"), "the second moment is not after the first");
  EXPECT_THAT(run_command(session_, "compare.range x 1"), testing::HasSubstr("not a number"));
}

}  // namespace
}  // namespace shardwise::view
