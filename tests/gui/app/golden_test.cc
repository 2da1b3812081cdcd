// Pictures of workspaces with the built-in font, pixel by pixel. They are made again by
// SHARDWISE_UPDATE_GOLDENS=1 build/dev/bin/gui_test --gtest_filter='Golden*'; look at them then.
#include <gtest/gtest.h>
#include <imgui.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "planner/files/atomic_file_set.h"
#include "tests/gui/picture_difference.h"
#include "tests/gui/png_reader.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

void expect_golden(Workspace workspace, bool dark, const std::string& name,
                   Plan plan = test::small_plan(), const std::vector<std::string>& commands = {}) {
  constexpr ImVec2 kSize(960, 600);
  Session session(std::move(plan), Timing::fitting);
  session.set_workspace(workspace);
  session.set_dark(dark);
  for (const std::string& each : commands) EXPECT_EQ(run_command(session, each), "");
  Stage stage(FontChoice::built_in, 1);
  draw_settled(stage, session, kSize);
  const Image drawn = stage.picture(session);
  const std::string file = "tests/gui/golden/" + name + ".png";
  if (std::getenv("SHARDWISE_UPDATE_GOLDENS") != nullptr) write_file(file, to_png(drawn));
  const Image golden = test::from_png(test::bytes_of_file(file));
  ASSERT_EQ(drawn.width, golden.width);
  ASSERT_EQ(drawn.height, golden.height);
  const std::size_t different = test::differing_channels(drawn, golden);
  if (different > 0) write_file("build/" + name + ".drawn.png", to_png(drawn));
  EXPECT_EQ(different, 0U) << "what was drawn is in build/" << name << ".drawn.png";
}

TEST(Golden, ExploreIsDrawnAsItWas) { expect_golden(Workspace::explore, true, "explore"); }

TEST(Golden, MemoryInLightColoursIsDrawnAsItWas) {
  expect_golden(Workspace::memory, false, "memory_light");
}

TEST(Golden, MeshWithAPinnedRankIsDrawnAsItWas) {
  expect_golden(Workspace::mesh, true, "mesh", test::two_node_plan(),
                {"mesh.rank 5", "mesh.colour time", "mesh.bandwidth infiniband 2"});
}

TEST(Golden, ScalingInLightColoursIsDrawnAsItWas) {
  expect_golden(Workspace::scaling, false, "scaling_light");
}

}  // namespace
}  // namespace shardwise::view
