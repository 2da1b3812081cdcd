// The mesh workspace, with a pointer.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <cfloat>
#include <set>
#include <string>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/draw/theme.h"
#include "gui/models/mesh/mesh_state.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/names.h"
#include "simulator/drawing/palette.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class MeshPanel : public testing::Test {
 protected:
  MeshPanel() {
    session_.set_workspace(Workspace::mesh);
    draw_settled(stage_, session_, kSmallWindow);
  }
  Probes::Place place(const std::string& probe) const {
    const auto found = stage_.probes().find(probe);
    EXPECT_TRUE(found) << probe;
    return found.value_or(Probes::Place{});
  }
  void point(ImVec2 at) {
    ImGui::GetIO().AddMousePosEvent(at.x, at.y);
    stage_.frame(session_, kSmallWindow);
  }
  void press(bool down) {
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
    stage_.frame(session_, kSmallWindow);
  }
  /// The ranks that are framed as the group of an axis.
  std::set<std::int64_t> framed(const std::string& axis) const {
    const std::string prefix = "mesh.group." + axis + ".";
    std::set<std::int64_t> ranks;
    for (const auto& [name, at] : stage_.probes().all()) {
      if (name.starts_with(prefix)) ranks.insert(std::stoll(name.substr(prefix.size())));
    }
    return ranks;
  }
  const AppState& state() const { return session_.state(); }

  Session session_{test::two_node_plan(), Timing::fitting};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(MeshPanel, ThePointerOnARankFramesThePlannersGroups) {
  EXPECT_TRUE(framed("tp").empty());
  for (const std::int64_t rank : {0, 5, 15}) {
    point(place("mesh.rank." + std::to_string(rank)).centre());
    stage_.frame(session_, kSmallWindow);
    for (const ShownGroup& group : kShownGroups) {
      std::set<std::int64_t> expected;
      const auto ranks = group_ranks(state().plan.layout, group.kind, rank);
      if (ranks.size() > 1) expected.insert(ranks.begin(), ranks.end());
      EXPECT_EQ(framed(std::string(name_of(group.axis))), expected) << group.label << ' ' << rank;
    }
  }
}

TEST_F(MeshPanel, EachRankIsDrawnOnceAndApartFromTheOthers) {
  for (int rank = 0; rank < 16; ++rank) {
    const Probes::Place at = place("mesh.rank." + std::to_string(rank));
    EXPECT_GT(at.most.x - at.least.x, 8);
    for (int other = 0; other < rank; ++other) {
      const Probes::Place there = place("mesh.rank." + std::to_string(other));
      const bool apart = there.most.x <= at.least.x || at.most.x <= there.least.x ||
                         there.most.y <= at.least.y || at.most.y <= there.least.y;
      EXPECT_TRUE(apart) << rank << " and " << other;
    }
  }
  EXPECT_FALSE(stage_.probes().find("mesh.rank.16"));
}

// The darkest shade is hardly another colour than the panel's.
TEST_F(MeshPanel, EachBoxHasAnEdgeThatCanBeSeen) {
  for (const bool dark : {true, false}) {
    session_.set_dark(dark);
    draw_settled(stage_, session_, kSmallWindow);
    const Image picture = stage_.picture(session_);
    const Theme& theme = theme_of(dark);
    for (int rank = 0; rank < 16; ++rank) {
      const Probes::Place at = place("mesh.rank." + std::to_string(rank));
      double most = 0;
      for (const float off : {-1.0F, 0.0F, 1.0F}) {
        const auto x = static_cast<std::size_t>(at.centre().x);
        const auto y = static_cast<std::size_t>(at.least.y + off);
        const auto* const pixel =
            &picture.pixels[3 * (y * static_cast<std::size_t>(picture.width) + x)];
        const std::string colour = fmt::format("#{:02x}{:02x}{:02x}", pixel[0], pixel[1], pixel[2]);
        most = std::max(most, sim::contrast(colour, theme.panel));
      }
      EXPECT_GE(most, 2.5) << rank << (dark ? " dark" : " light");
    }
  }
}

TEST_F(MeshPanel, AClickKeepsTheGroupsAndAnotherLetsThemGo) {
  const ImVec2 at = place("mesh.rank.6").centre();
  point(at);
  press(true);
  press(false);
  EXPECT_EQ(state().mesh.pinned, 6);
  point({-FLT_MAX, -FLT_MAX});
  stage_.frame(session_, kSmallWindow);
  EXPECT_EQ(framed("pp").size(), 2U);
  point(at);
  press(true);
  press(false);
  EXPECT_FALSE(state().mesh.pinned);
}

TEST_F(MeshPanel, AnAxisIsDraggedToAnotherPlaceAndItsCostIsShownOnTheWay) {
  const Layout before = state().plan.layout;
  const ImVec2 pp = place("order.pp").centre();
  const Probes::Place tp = place("order.tp");
  point(pp);
  press(true);
  point({(pp.x + tp.least.x) / 2, pp.y});
  point({tp.least.x + 1, pp.y});
  stage_.frame(session_, kSmallWindow);
  EXPECT_EQ(state().plan.layout, before);
  ASSERT_TRUE(state().mesh.tried);
  EXPECT_EQ(order_text(before, *state().mesh.tried), "pp-tp-dp_shard-dp_replicate");
  stage_.frame(session_, kSmallWindow);
  EXPECT_TRUE(stage_.probes().find("order.tried"));
  const Seconds shown = state().mesh.tried_step;
  press(false);
  stage_.frame(session_, kSmallWindow);
  EXPECT_EQ(order_text(before, state().plan.layout.order), "pp-tp-dp_shard-dp_replicate");
  EXPECT_EQ(state().report.step_time, shown);
  EXPECT_FALSE(state().mesh.tried);
}

TEST_F(MeshPanel, ABandwidthIsDraggedAndTheEstimateIsThereInTheFrame) {
  const Probes::Place slider = place("stretch.infiniband");
  session_.worker().hold();
  point(slider.centre());
  press(true);
  point({slider.most.x - 2, slider.centre().y});
  stage_.frame(session_, kSmallWindow);
  press(false);
  session_.worker().release();
  ASSERT_TRUE(state().mesh.stretch.any());
  EXPECT_NEAR(state().mesh.stretch.factors[1], kMostStretch, 1e-4);
  EXPECT_LT(state().mesh.stretch.report->step_time, state().report.step_time);
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_TRUE(stage_.probes().find("stretch.words.3"));
}

TEST_F(MeshPanel, BarsAndTotalsOfLinksAreOnScreen) {
  const TrafficTable table = traffic_table(state().plan, *state().mesh.facts, 0);
  for (const std::string& tier : table.tiers) place("traffic.total." + tier);
  for (std::size_t row = 1; row <= table.rows.size(); ++row) {
    place("traffic.row." + std::to_string(row));
  }
}

}  // namespace
}  // namespace shardwise::view
