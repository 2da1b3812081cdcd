// The scaling workspace, with a pointer.
#include <gtest/gtest.h>
#include <imgui.h>

#include <array>
#include <cfloat>
#include <string>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "simulator/drawing/palette.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class ScalingPanel : public testing::Test {
 protected:
  explicit ScalingPanel(Plan plan = test::small_plan()) : session_(std::move(plan)) {
    session_.set_workspace(Workspace::scaling);
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
  const AppState& state() const { return session_.state(); }
  const ScalingMap& map() const { return state().scaling.map; }
  std::string probe_of(std::size_t cell) const {
    return "scaling.cell." + map().rows[cell / map().gpus.size()].value + "." +
           std::to_string(map().cells[cell].gpus);
  }
  /// A pixel near the lower left corner of a place, away from words and marks.
  std::array<int, 3> corner_of(const Image& picture, const Probes::Place& place) const {
    const auto x = static_cast<std::size_t>(place.most.x - 5);  // no dot is there
    const auto y = static_cast<std::size_t>(place.most.y - 5);
    const std::size_t at = 3 * (y * static_cast<std::size_t>(picture.width) + x);
    return {picture.pixels[at], picture.pixels[at + 1], picture.pixels[at + 2]};
  }

  Session session_;
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(ScalingPanel, CellsHaveTheColourOfTheirShade) {
  const Image picture = stage_.picture(session_);
  for (std::size_t cell = 0; cell < map().cells.size(); ++cell) {
    const auto place = stage_.probes().find(probe_of(cell));
    ASSERT_TRUE(place) << probe_of(cell);
    const auto share = shade(map(), map().cells[cell], state().scaling.colour);
    if (!share) continue;
    EXPECT_EQ(corner_of(picture, *place), sim::channels(sim::heat(*share, sim::Ground::dark)))
        << probe_of(cell);
  }
}

TEST_F(ScalingPanel, AClickTakesACell) {
  const std::size_t cell = map().order[3];
  const Layout layout = *map().cells[cell].layout;
  const std::int64_t gpus = map().cells[cell].gpus;
  click(probe_of(cell));
  EXPECT_EQ(state().plan.cluster.gpus, gpus);
  EXPECT_EQ(state().plan.layout, layout);
  EXPECT_EQ(map().row * map().gpus.size() + map().column, cell);
}

TEST_F(ScalingPanel, MenusChooseRowsAndColour) {
  click("scaling.rows.batch");
  EXPECT_EQ(map().kind, ScalingRows::batch);
  click("scaling.colour.cost");
  EXPECT_EQ(state().scaling.colour, ScalingColour::cost);
}

class ScalingOfNothing : public ScalingPanel {
 protected:
  ScalingOfNothing() : ScalingPanel(test::plan_that_cannot_fit()) {}
};

TEST_F(ScalingOfNothing, DrawsCellsThatSayWhyAndAClickOnOneChangesNothing) {
  const std::size_t own = map().order.front();
  ASSERT_FALSE(map().cells[own].layout);
  const Plan before = state().plan;
  click(probe_of(own));
  EXPECT_EQ(state().plan.cluster, before.cluster);
  EXPECT_EQ(state().plan.layout, before.layout);
}

}  // namespace
}  // namespace shardwise::view
