// Every workspace of every kind of question draws and has its panels.
#include <gtest/gtest.h>
#include <imgui.h>

#include <string>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/panels/panels.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

constexpr ImVec2 kSize(1280, 800);

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
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    session.set_workspace(static_cast<Workspace>(w));
    draw_settled(stage, session, kSize);
    for (const Panel& panel : panel_list()) {
      // A tab that is behind another is not drawn.
      const bool behind = panel.id == "why" || panel.id == "axes";
      if (panel.workspace != static_cast<Workspace>(w) || behind) continue;
      if (panel.has != nullptr && !panel.has(session.state())) continue;
      const auto place = stage.probes().find(panel.id);
      ASSERT_TRUE(place) << panel.id;
      EXPECT_GE(place->least.x, 0) << panel.id;
      EXPECT_LE(place->most.x, kSize.x) << panel.id;
      EXPECT_LE(place->most.y, kSize.y) << panel.id;
      EXPECT_GT(place->most.x - place->least.x, 100) << panel.id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Workspaces, testing::Range(0, 4));

}  // namespace
}  // namespace shardwise::view
