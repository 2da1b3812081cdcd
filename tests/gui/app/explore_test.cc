#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <string>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/draw/theme.h"
#include "gui/models/commands/commands.h"
#include "gui/models/explore/explore_model.h"
#include "gui/models/memory/memory_model.h"
#include "gui/models/window/summary_model.h"
#include "simulator/drawing/palette.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class Explore : public testing::Test {
 protected:
  explicit Explore(Plan plan = test::small_plan(), float scale = 1)
      : session_(std::move(plan)), stage_(FontChoice::built_in, scale) {
    draw_settled(stage_, session_, kSmallWindow);
  }
  void run(const std::string& line) {
    EXPECT_EQ(run_command(session_, line), "");
    draw_settled(stage_, session_, kSmallWindow);
  }
  void click(const std::string& probe) {
    const auto place = stage_.probes().find(probe);
    ASSERT_TRUE(place) << probe;
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(place->centre().x, place->centre().y);
    stage_.frame(session_, kSmallWindow);
    io.AddMouseButtonEvent(ImGuiMouseButton_Left, true);
    stage_.frame(session_, kSmallWindow);
    io.AddMouseButtonEvent(ImGuiMouseButton_Left, false);
    stage_.frame(session_, kSmallWindow);
    io.AddMousePosEvent(-FLT_MAX, -FLT_MAX);
    draw_settled(stage_, session_, kSmallWindow);
  }
  Probes::Place place(const std::string& probe) const {
    const auto found = stage_.probes().find(probe);
    EXPECT_TRUE(found) << probe;
    return found.value_or(Probes::Place{});
  }
  const AppState& state() const { return session_.state(); }

  Session session_;
  Stage stage_;
};

TEST_F(Explore, ShowsEveryTileInsideTheWindow) {
  for (const Tile& tile : summary_tiles(state().plan, state().report)) {
    const Probes::Place at = place("summary." + tile.id);
    EXPECT_GE(at.least.x, 0);
    EXPECT_LE(at.most.x, kSmallWindow.x) << tile.id;
    EXPECT_LE(at.most.y, kSmallWindow.y) << tile.id;
  }
}

TEST_F(Explore, AClickOnARowSelectsIt) {
  click("explorer.row.3");
  EXPECT_EQ(state().selected, state().shown[2]);
  EXPECT_EQ(state().plan.layout, state().answer.rows[state().shown[2]].layout);
}

TEST_F(Explore, AClickOnAHeadingSortsByItAndAnotherTurnsTheOrderAround) {
  click("explorer.head.memory");
  const auto memory = [&](std::size_t place) {
    return state().answer.rows[state().shown[place]].memory;
  };
  EXPECT_LE(memory(0), memory(1));
  const Bytes least = memory(0);
  click("explorer.head.memory");
  EXPECT_GE(memory(0), memory(1));
  EXPECT_EQ(memory(state().shown.size() - 1), least);
}

TEST_F(Explore, BarsAreAsWideAsTheirBytes) {
  const double axis = 1.25 * static_cast<double>(state().answer.usable.value());
  const Probes::Place first = place("explorer.row.1.bar");
  const float top = place("explorer.row.1").least.y;
  ASSERT_GT(top, 0);
  const double bytes = static_cast<double>(state().answer.rows[state().shown[0]].memory.value());
  for (const std::size_t row : {2U, 3U, 4U}) {
    const Probes::Place bar = place("explorer.row." + std::to_string(row) + ".bar");
    const double other =
        static_cast<double>(state().answer.rows[state().shown[row - 1]].memory.value());
    ASSERT_LT(other, axis);
    EXPECT_NEAR((bar.most.x - bar.least.x) / (first.most.x - first.least.x), other / bytes, 0.02);
  }
}

TEST_F(Explore, StacksAreAsHighAsTheirBytes) {
  const std::vector<MemoryStack> stacks = memory_stacks(state().report, MemoryBy::phase);
  const Probes::Place highest =
      place("memory." + std::ranges::max_element(stacks, {}, &MemoryStack::total)->label);
  const Bytes most = state().report.verdict.point;
  // Of 80 GiB they would be a few pixels: the axis ends with them.
  EXPECT_FALSE(stage_.probes().find("memory.limit"));
  EXPECT_GT(highest.most.y - highest.least.y, 30);
  for (const MemoryStack& stack : stacks) {
    const Probes::Place bar = place("memory." + stack.label);
    EXPECT_NEAR(bar.most.y - bar.least.y, (highest.most.y - highest.least.y) * (stack.total / most),
                1)
        << stack.label;
  }
}

TEST_F(Explore, PixelsOfAStackHaveTheColourOfTheirGroup) {
  run("view.memory");
  const Image image = stage_.picture(session_);
  const std::string weights = "memory.pass.weights";
  const Probes::Place at = place(weights);
  const std::array<int, 3> expected = sim::channels(theme_of(true).of(MemoryGroup::weights));
  const std::uint8_t* const pixel =
      image.at(static_cast<int>(at.centre().x), static_cast<int>(at.centre().y));
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(pixel[c], expected[c]);
}

TEST_F(Explore, ADotThatIsClickedIsTheSelectedRow) {
  run("layout.select 4");
  const std::size_t row = state().selected;
  const ImVec2 dot = place("trade.selected").centre();
  run("layout.select 1");
  ImGui::GetIO().AddMousePosEvent(dot.x, dot.y);
  stage_.frame(session_, kSmallWindow);
  for (const bool down : {true, false}) {
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
    stage_.frame(session_, kSmallWindow);
  }
  EXPECT_EQ(state().answer.rows[state().selected].memory, state().answer.rows[row].memory);
}

TEST_F(Explore, SaysWhatIsWrongWithAFilter) {
  EXPECT_NE(run_command(session_, "table.filter tpp<8"), "");
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_TRUE(stage_.probes().find("explorer.problem"));
  run("table.filter tp:1");
  EXPECT_FALSE(stage_.probes().find("explorer.problem"));
  for (const std::uint32_t row : state().shown) EXPECT_EQ(state().answer.rows[row].layout.tp, 1);
}

TEST_F(Explore, DrawsTheSameBytesTwice) {
  const std::string once = to_png(stage_.picture(session_));
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_EQ(to_png(stage_.picture(session_)), once);
}

TEST_F(Explore, SaysThatNoRowMatches) {
  run("table.filter tp>100");
  EXPECT_TRUE(state().shown.empty());
  EXPECT_TRUE(stage_.probes().find("explorer.empty"));
  run("layout.next");
  run("table.filter");
  EXPECT_FALSE(state().shown.empty());
}

class NothingFits : public Explore {
 protected:
  NothingFits() : Explore(test::plan_that_cannot_fit()) {}
};

TEST_F(NothingFits, TurnsTheMemoryTileBad) {
  const Image image = stage_.picture(session_);
  const Probes::Place at = place("summary.memory");
  const std::array<int, 3> bad = sim::channels(theme_of(true).bad);
  bool found = false;
  for (int y = static_cast<int>(at.least.y); y < static_cast<int>(at.most.y); ++y) {
    for (int x = static_cast<int>(at.least.x); x < static_cast<int>(at.most.x); ++x) {
      const std::uint8_t* const pixel = image.at(x, y);
      found = found || std::equal(bad.begin(), bad.end(), pixel);
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(NothingFits, ShowsTheWayOutAndWhatIsWrongWithTheRow) {
  place("explorer.way_out");
  place("explorer.misfit");
  EXPECT_FALSE(state().exploring.way_out.empty());
  EXPECT_FALSE(state().exploring.fix.has_value());  // one way out, that of the question
  ASSERT_GT(state().shown.size(), 1U);
  EXPECT_LE(state().answer.rows[state().shown[0]].memory,
            state().answer.rows[state().shown[1]].memory);
}

class TwiceAsLarge : public Explore {
 protected:
  TwiceAsLarge() : Explore(test::small_plan(), 2) {}
};

TEST_F(TwiceAsLarge, ShowsEveryTileInsideTheWindow) {
  for (const Tile& tile : summary_tiles(state().plan, state().report)) {
    EXPECT_LE(place("summary." + tile.id).most.x, kSmallWindow.x) << tile.id;
    EXPECT_LE(place("summary." + tile.id).most.y, kSmallWindow.y) << tile.id;
  }
}

TEST_F(Explore, ShowsWhatWouldHelpMostByAClickOnItsRow) {
  EXPECT_FALSE(state().exploring.levers.asked);  // nobody looks at it
  run("panel.show levers");
  const Levers& levers = state().exploring.levers;
  ASSERT_TRUE(levers.known);
  ASSERT_GE(levers.rows.size(), 3U);
  const auto more = std::ranges::find_if(levers.rows, [](const sim::HelpfulChange& each) {
    return each.text.starts_with("memory + ");
  });
  ASSERT_NE(more, levers.rows.end());
  const std::string row = "levers.row." + std::to_string(more - levers.rows.begin() + 1);
  const Bytes memory = more->plan.cluster.gpu.hbm_bytes;
  ASSERT_NE(memory, state().plan.cluster.gpu.hbm_bytes);
  click(row);
  EXPECT_EQ(state().plan.cluster.gpu.hbm_bytes, memory);
  EXPECT_TRUE(state().exploring.levers.known);  // of the new question
  EXPECT_TRUE(stage_.probes().find("levers.row.1"));
}

TEST_F(Explore, BeginsWithMenusOfModelClusterAndGpus) {
  EXPECT_FALSE(stage_.probes().find("start.show"));
  run("app.start");
  click("start.model.bloom-560m");
  EXPECT_EQ(state().plan.model.name, "bloom-560m");
  EXPECT_TRUE(stage_.probes().find("start.gpus.8"));
  // The best layout of what was chosen is selected.
  EXPECT_EQ(state().plan.layout, state().answer.rows[state().answer.ranked.front()].layout);
  EXPECT_TRUE(stage_.probes().find("start.answer"));
  click("start.show");
  EXPECT_FALSE(state().start_open);
  EXPECT_FALSE(stage_.probes().find("start.show"));
  EXPECT_EQ(state().plan.model.name, "bloom-560m");
}

TEST_F(Explore, ExportsUnderANameThatIsReady) {
  click("summary.export");
  click("summary.export.page");
  EXPECT_TRUE(state().palette_open);
  EXPECT_EQ(state().palette_text, "export.page small-8-dgx-h100.html");
}

}  // namespace
}  // namespace shardwise::view
