// Every workspace of every kind of question draws and has its panels.
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <string>
#include <utility>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "gui/panels/panels.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

Plan of_16_384_gpus() {
  Plan plan = test::small_plan();
  plan.cluster.gpus = 16'384;
  plan.layout.dp_replicate = 2048;
  plan.job.global_batch_size = 16'384;
  return plan;
}

class Workspaces : public testing::TestWithParam<int> {
 protected:
  static Plan plan() {
    switch (GetParam()) {
      case 0:
        return test::small_plan();
      case 1:
        return test::small_plan(1);
      case 2:
        return test::plan_that_cannot_fit();
      default:
        return of_16_384_gpus();
    }
  }
};

TEST_P(Workspaces, ShowTheirPanelsInsideTheWindow) {
  Session session(plan(), Timing::fitting);
  Stage stage(FontChoice::built_in, 1);
  session.follow("steps.jsonl");
  session.settle();
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    const auto workspace = static_cast<Workspace>(w);
    for (const PanelFacts& panel : panel_facts()) {
      if (!panel.is_in(workspace) || !panel.shows(session.state())) continue;
      session.set_workspace(workspace);
      ASSERT_EQ(run_command(session, "panel.show " + std::string(panel.id)), "");
      draw_settled(stage, session, kSmallWindow);
      EXPECT_EQ(session.state().workspace, workspace) << panel.id;
      const ImGuiWindow* const window =
          ImGui::FindWindowByName(window_name(panel, workspace).c_str());
      ASSERT_NE(window, nullptr) << panel.id;
      EXPECT_TRUE(window->DockIsActive) << panel.id << " is docked nowhere";
      const auto place = stage.probes().find(panel.id);
      ASSERT_TRUE(place) << panel.id;
      EXPECT_GE(place->least.x, 0) << panel.id;
      EXPECT_LE(place->most.x, kSmallWindow.x) << panel.id;
      EXPECT_LE(place->most.y, kSmallWindow.y) << panel.id;
      EXPECT_GT(place->most.x - place->least.x, 100) << panel.id;
    }
  }
}

// Their numbers differ from those of simulated tiles in the last digits.
TEST(Panels, OfTheModelsNumbersSayThatBesideSimulatedTiles) {
  Session session(test::two_node_plan(), Timing::fitting);
  Stage stage(FontChoice::built_in, 1);
  const auto says = [&](const PanelFacts& panel, Workspace workspace, ImVec2 size) {
    session.set_workspace(workspace);
    run_command(session, "panel.show " + std::string(panel.id));
    draw_settled(stage, session, size);
    return stage.probes().find("by_model." + std::string(panel.title)).has_value();
  };
  std::size_t found = 0;
  for (const ImVec2 size : {ImVec2(1280, 720), kSmallWindow}) {
    for (const auto& [id, workspace] :
         {std::pair("scaling_table", Workspace::scaling), std::pair("heat", Workspace::scaling),
          std::pair("order", Workspace::mesh), std::pair("stretch", Workspace::mesh),
          std::pair("why", Workspace::explore), std::pair("neighbours", Workspace::explore)}) {
      const PanelFacts* const panel = find_panel(id);
      ASSERT_NE(panel, nullptr) << id;
      EXPECT_TRUE(says(*panel, workspace, size)) << id;
      ++found;
    }
  }
  EXPECT_EQ(found, 12);
  EXPECT_FALSE(says(*find_panel("explorer"), Workspace::explore, kSmallWindow));
}

TEST(Panels, AreDrawnOnceEachAndKnown) {
  ASSERT_EQ(panel_list().size(), panel_facts().size());
  for (const Panel& panel : panel_list()) {
    const PanelFacts* const facts = find_panel(panel.id);
    ASSERT_NE(facts, nullptr) << panel.id;
    EXPECT_NE(facts->workspaces, 0) << panel.id;
    EXPECT_FALSE(facts->reason.empty()) << panel.id;
  }
}

TEST(Panels, ComeToTheFrontByTheirNameInAnyWorkspace) {
  Session session(test::small_plan());
  Stage stage(FontChoice::built_in, 1);
  draw_settled(stage, session, kSmallWindow);
  EXPECT_FALSE(stage.probes().find("why"));
  EXPECT_EQ(run_command(session, "panel.show traffic"), "");
  draw_settled(stage, session, kSmallWindow);
  EXPECT_EQ(session.state().workspace, Workspace::mesh);
  EXPECT_TRUE(stage.probes().find("traffic"));
  EXPECT_EQ(run_command(session, "panel.show compare"), "Compared has nothing to show yet");
  EXPECT_EQ(run_command(session, "panel.show nieghbours"),
            "nieghbours is no panel (did you mean neighbours?)");
}

TEST(Panels, WhyNotComesToTheFrontWithItsAnswer) {
  Session session(test::small_plan());
  Stage stage(FontChoice::built_in, 1);
  draw_settled(stage, session, kSmallWindow);
  EXPECT_EQ(run_command(session, "why.layout tp=4 pp=2"), "");
  draw_settled(stage, session, kSmallWindow);
  EXPECT_TRUE(stage.probes().find("why.time.tp=4,pp=2"));
  EXPECT_FALSE(stage.probes().find("why.time.selected"));
}

INSTANTIATE_TEST_SUITE_P(Plans, Workspaces, testing::Range(0, 4));

}  // namespace
}  // namespace shardwise::view
