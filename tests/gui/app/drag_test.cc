// The explore workspace under the pointer: what moves, what stays, and in which frame.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <string>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "planner/spec/plan/plan.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

constexpr double kGiB = 1 << 30;

class Drag : public testing::Test {
 protected:
  Drag() { draw_settled(stage_, session_, kSmallWindow); }
  void press(ImVec2 at, bool down) {
    ImGui::GetIO().AddMousePosEvent(at.x, at.y);
    stage_.frame(session_, kSmallWindow);
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
    stage_.frame(session_, kSmallWindow);
  }
  void move(ImVec2 to) {
    ImGui::GetIO().AddMousePosEvent(to.x, to.y);
    stage_.frame(session_, kSmallWindow);
  }
  void drag(ImVec2 from, ImVec2 to) {
    press(from, true);
    move({(from.x + to.x) / 2, (from.y + to.y) / 2});
    move(to);
    press(to, false);
    move({-FLT_MAX, -FLT_MAX});
    draw_settled(stage_, session_, kSmallWindow);
  }
  Probes::Place place(const std::string& probe) const {
    const auto found = stage_.probes().find(probe);
    EXPECT_TRUE(found) << probe;
    return found.value_or(Probes::Place{});
  }
  const AppState& state() const { return session_.state(); }

  Session session_{test::small_plan()};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(Drag, OfAnAxisMovesTheRowInItsFrameAndLeavesAGhost) {
  const ImVec2 dot = place("trade.selected").centre();
  const Probes::Place track = place("what_if.tp");
  session_.worker().hold();
  press({track.least.x + 7, track.centre().y}, true);
  move({track.most.x - 7, track.centre().y});
  EXPECT_EQ(state().plan.layout.tp, 8);
  stage_.frame(session_, kSmallWindow);
  const Probes::Place now = place("trade.selected");
  EXPECT_TRUE(now.centre().x != dot.x || now.centre().y != dot.y);
  // The frame has both: where the selected layout is now, and where it was.
  const Probes::Place plot = place("trade.plot");
  const ImVec2 ghost = place("trade.ghost").centre();
  for (const ImVec2 at : {ghost, now.centre()}) {
    EXPECT_TRUE(at.x > plot.least.x && at.x < plot.most.x && at.y > plot.least.y &&
                at.y < plot.most.y);
  }
  ASSERT_TRUE(state().exploring.ghost);
  const StepReport& before = state().exploring.ghost->numbers.estimated;
  EXPECT_EQ(ghost.x < now.centre().x, before.verdict.point < state().report.verdict.point);
  EXPECT_EQ(ghost.y > now.centre().y, before.step_time < state().report.step_time);
  // Its row is in sight in the frame that follows the drag.
  const Probes::Place row = place("explorer.selected");
  const Probes::Place table = place("explorer");
  EXPECT_GE(row.least.y, table.least.y);
  EXPECT_LE(row.most.y, table.most.y);
  press({track.most.x - 7, track.centre().y}, false);
  session_.worker().release();
  session_.undo();
  EXPECT_EQ(state().plan.layout.tp, 1);
  EXPECT_FALSE(session_.can_undo());
}

TEST_F(Drag, OfALockedAxisMovesNothing) {
  EXPECT_EQ(run_command(session_, "question.lock tp"), "");
  draw_settled(stage_, session_, kSmallWindow);
  const Probes::Place track = place("what_if.tp");
  drag({track.least.x + 7, track.centre().y}, {track.most.x - 7, track.centre().y});
  EXPECT_EQ(state().plan.layout.tp, 1);
}

TEST_F(Drag, OfTheLineHoldsMemoryBack) {
  EXPECT_EQ(run_command(session_, "layout.best"), "");
  draw_settled(stage_, session_, kSmallWindow);
  const Probes::Place line = place("trade.limit");
  const Probes::Place plot = place("trade.plot");
  const double hbm = static_cast<double>(state().plan.cluster.gpu.hbm_bytes.value()) / kGiB;
  const float middle = line.least.x;
  drag({middle + 0.5F, plot.centre().y}, {middle - 40, plot.centre().y});
  EXPECT_GT(state().plan.job.held_back, 0);
  const double usable = static_cast<double>(state().answer.usable.value()) / kGiB;
  EXPECT_NEAR(usable, hbm * (1 - state().plan.job.held_back), 0.01);
  EXPECT_NEAR(place("trade.limit").least.x, middle - 40, 6);  // a percent is some pixels
  for (const LayoutRow& row : state().answer.rows) {
    EXPECT_TRUE(row.fit != Fit::fits || row.memory <= state().answer.usable);
  }
  session_.undo();
  EXPECT_EQ(state().plan.job.held_back, 0);
}

TEST_F(Drag, OfABoxShowsTheRowsInIt) {
  EXPECT_EQ(run_command(session_, "table.filter zero:1"), "");
  draw_settled(stage_, session_, kSmallWindow);
  const std::size_t before = state().shown.size();
  const ImVec2 dot = place("trade.selected").centre();
  const Probes::Place plot = place("trade.plot");
  const ImVec2 from(plot.least.x + 2, plot.least.y + 2);
  const ImVec2 to(dot.x + 12, dot.y + 12);
  drag(from, to);
  EXPECT_THAT(state().explore.filter_text, testing::StartsWith("zero:1 memory>="));
  EXPECT_TRUE(state().explore.parsed.problem.empty());
  EXPECT_LT(state().shown.size(), before);
  EXPECT_FALSE(state().shown.empty());
  // Another box replaces it.
  drag(from, {to.x + 10, to.y});
  const std::string& words = state().explore.filter_text;
  EXPECT_EQ(words.find("memory>="), words.rfind("memory>="));
}

TEST_F(Drag, OnLogAxesIsAStateOfTheirOwn) {
  EXPECT_EQ(run_command(session_, "trade.log"), "");
  draw_settled(stage_, session_, kSmallWindow);
  const Probes::Place plot = place("trade.plot");
  const Probes::Place dot = place("trade.selected");
  EXPECT_GT(dot.centre().x, plot.least.x);
  EXPECT_LT(dot.centre().x, plot.most.x);
}

TEST_F(Drag, WordsTypedWhileThePaletteOpensAreKept) {
  EXPECT_EQ(run_command(session_, "app.palette"), "");
  ImGui::GetIO().AddInputCharactersUTF8("un");
  stage_.frame(session_, kSmallWindow);
  ImGui::GetIO().AddInputCharactersUTF8("d");
  stage_.frame(session_, kSmallWindow);
  ImGui::GetIO().AddInputCharactersUTF8("o");
  stage_.frame(session_, kSmallWindow);
  stage_.frame(session_, kSmallWindow);
  EXPECT_TRUE(stage_.probes().find("palette.question.undo"));
  EXPECT_FALSE(stage_.probes().find("palette.view.explore"));
}

TEST_F(Drag, TheColumnsMenuChoosesColumns) {
  const Probes::Place button = place("explorer.columns");
  press(button.centre(), true);
  press(button.centre(), false);
  stage_.frame(session_, kSmallWindow);
  const Probes::Place cost = place("explorer.column.cost");
  press(cost.centre(), true);
  press(cost.centre(), false);
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_FALSE(state().explore.columns.empty());
  EXPECT_TRUE(stage_.probes().find("explorer.head.cost"));
  EXPECT_EQ(run_command(session_, "table.columns"), "");
  EXPECT_TRUE(state().explore.columns.empty());
  EXPECT_NE(run_command(session_, "table.columns tp colour"), "");
}

TEST_F(Drag, AClickOnAGroupOpensItsCategories) {
  EXPECT_EQ(run_command(session_, "view.memory"), "");
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_FALSE(stage_.probes().find("categories.optimizer moments"));
  const ImVec2 group = place("categories.group.optimizer").centre();
  press(group, true);
  press(group, false);
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_TRUE(stage_.probes().find("categories.optimizer moments"));
}

}  // namespace
}  // namespace shardwise::view
