// What is drawn can be read: units, marks and names have room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "gui/models/memory/memory_model.h"
#include "gui/models/window/summary_model.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/memory_unit.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class Looks : public testing::Test {
 protected:
  void draw(const std::string& command = "") {
    if (!command.empty()) {
      EXPECT_EQ(run_command(session_, command), "");
    }
    draw_settled(stage_, session_, kSmallWindow);
  }
  Probes::Place place(const std::string& probe) const {
    const auto found = stage_.probes().find(probe);
    EXPECT_TRUE(found) << probe;
    return found.value_or(Probes::Place{});
  }
  static bool inside(const Probes::Place& inner, const Probes::Place& outer) {
    return inner.least.x >= outer.least.x && inner.most.x <= outer.most.x &&
           inner.least.y >= outer.least.y && inner.most.y <= outer.most.y;
  }

  Session session_{test::small_plan()};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(Looks, ThePeakHasItsOwnUnit) {
  StepReport report = session_.state().report;
  for (const Bytes peak : {108_MiB, 37_GiB, 7_GiB * 1024}) {
    report.verdict.point = peak;
    const std::vector<Tile> tiles = summary_tiles(session_.state().plan, report);
    const auto tile = std::ranges::find(tiles, "memory", &Tile::id);
    ASSERT_NE(tile, tiles.end());
    EXPECT_THAT(tile->value + " " + tile->unit, testing::StartsWith(format_bytes(peak) + " of "));
  }
}

TEST_F(Looks, StacksHaveAHeightHoweverMuchMemoryAGpuHas) {
  MemoryStack stack;
  stack.total = 108_MiB;
  EXPECT_EQ(axis_top({stack}, 12_GiB), 108_MiB);
  stack.total = 10_GiB;
  EXPECT_EQ(axis_top({stack}, 12_GiB), 12_GiB);
}

TEST_F(Looks, EveryPhaseIsNamed) {
  draw();
  float end = 0;
  for (const std::string_view phase : kMemoryPhaseLabels) {
    const Probes::Place name = place("memory.name." + std::string(phase));
    EXPECT_GT(name.least.x, end) << phase;
    EXPECT_TRUE(inside(name, place("memory"))) << phase;
    end = name.most.x;
  }
}

TEST_F(Looks, HelpIsWithinTheWindow) {
  draw("app.help");
  const Probes::Place help = place("help");
  EXPECT_GE(help.least.y, 0);
  EXPECT_LE(help.most.y, kSmallWindow.y);
}

TEST_F(Looks, EveryRowCanBeSelectedAndItsDotIsInSight) {
  draw();
  const std::size_t rows = session_.state().shown.size();
  ASSERT_GT(rows, 4U);
  for (const std::size_t row : {rows, rows / 2, rows / 4}) {
    draw("layout.select " + std::to_string(row));
    EXPECT_TRUE(inside(place("trade.selected"), place("trade"))) << row;
    const ImVec2 dot = place("trade.selected").centre();
    EXPECT_TRUE(inside({dot, dot}, place("trade.plot"))) << row;
  }
}

TEST_F(Looks, TilesAreInOneLine) {
  draw();
  const float top = place("summary.step").least.y;
  for (const Tile& tile : summary_tiles(session_.state().plan, session_.state().report)) {
    EXPECT_EQ(place("summary." + tile.id).least.y, top) << tile.id;
  }
}

TEST(LooksOfBounds, WhatIsKnownOfTimesIsWithinItsPanel) {
  Session session(test::small_plan(), Timing::fitting);
  Stage stage(FontChoice::built_in, 1);
  draw_settled(stage, session, {1000, 620});
  ASSERT_FALSE(session.state().answer.exact);
  const auto words = stage.probes().find("what_if.known");
  const auto panel = stage.probes().find("what_if");
  ASSERT_TRUE(words && panel);
  EXPECT_LT(words->most.x, panel->most.x);
}

TEST(LooksOfNothing, DotsOfLayoutsThatDoNotFitAreInSight) {
  Session session(test::plan_that_cannot_fit());
  Stage stage(FontChoice::built_in, 1);
  draw_settled(stage, session, kSmallWindow);
  const auto dot = stage.probes().find("trade.selected");
  const auto plot = stage.probes().find("trade.plot");
  ASSERT_TRUE(dot && plot);
  EXPECT_GT(dot->centre().x, plot->least.x);
  EXPECT_LT(dot->centre().x, plot->most.x);
  EXPECT_LT(dot->centre().y, plot->most.y);
}

}  // namespace
}  // namespace shardwise::view
