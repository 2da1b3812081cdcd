// Files of the places of panels, as they reach ImGui.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <array>
#include <random>
#include <string>

#include "gui/app/left_window.h"
#include "gui/app/options.h"
#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/window/left_view.h"
#include "gui/models/window/panel_places.h"
#include "planner/spec/plan/plan.h"
#include "tests/gui/small_plan.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

constexpr ImVec2 kNarrowWindow(900, 600);

class PanelLayout : public testing::Test {
 protected:
  PanelLayout() { draw_settled(stage_, session_, kNarrowWindow); }
  void draw_all() {
    for (std::size_t i = 0; i < kWorkspaces; ++i) {
      session_.set_workspace(static_cast<Workspace>(i));
      for (int frame = 0; frame < 2; ++frame) stage_.frame(session_, kNarrowWindow);
    }
  }

  Session session_{test::small_plan(), Timing::fitting};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(PanelLayout, OfAWindowIsOneThatIsTakenBack) {
  draw_all();
  EXPECT_EQ(problem_of_panels(stage_.panels()), "");
}

// Parts of lines are exchanged, taken away and written twice. What is refused is refused; the rest
// has to be drawn: ImGui would end this program.
TEST_F(PanelLayout, OfAnyTextIsRefusedOrDrawn) {
  draw_all();
  const std::string panels = stage_.panels();
  std::mt19937 random(15);  // NOLINT(*msc51*): the same texts every time
  const auto below = [&](std::size_t end) { return random() % end; };
  const auto part = [&]() -> std::pair<std::size_t, std::size_t> {
    const std::size_t from = panels.find_first_not_of(" \n", below(panels.size() - 50));
    return {from, panels.find_first_of(" \n", from) - from};
  };
  const std::array<std::string, 7> others = {
      "", "Split=Y", "CentralNode=1", "Split=Z", "Size=0,0", "DockId=0x0000000B,3", "Pos=9,9",
  };
  int drawn = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto [at, length] = part();
    const auto [from, taken] = part();
    const std::size_t other = below(2 * others.size());
    std::string text = panels;
    text.replace(at, length, other < others.size() ? others[other] : panels.substr(from, taken));
    if (!problem_of_panels(text).empty()) continue;
    stage_.place_panels(text);
    draw_all();
    ++drawn;
  }
  EXPECT_GT(drawn, 20);
}

TEST_F(PanelLayout, ThatIsBrokenIsIgnoredAtTheStartAndThatIsSaid) {
  const test::Scratch scratch;
  std::string panels = stage_.panels();
  panels.replace(panels.find("Split=X"), 7, "Split=Z");
  const std::string file =
      scratch.write_bytes("view.json", to_json({640, 480, false, Workspace::mesh, panels}));
  Options options;
  restore_view(file, stage_, session_, options);
  EXPECT_THAT(session_.state().message, testing::StartsWith("ignored: "));
  EXPECT_THAT(session_.state().message, testing::HasSubstr("/panels"));
  EXPECT_TRUE(session_.state().dark);
  EXPECT_NE(session_.load_view(file), "");
  draw_all();
}

TEST(LayoutFile, ThatIsBrokenEndsAPictureWithALine) {
  const test::Scratch scratch;
  const std::string plan = scratch.write_bytes("plan.json", to_json(test::small_plan()));
  const std::string panels = "[Docking][Data]\nDockSpace ID=0x0BADCAFE Pos=0,0 Size=9,9 Split=Z\n";
  const std::string file =
      scratch.write_bytes("view.json", to_json({640, 480, false, Workspace::mesh, panels}));
  const test::Outcome refused = test::run_program(
      test::built("shardwise-view"), {"--layout", file, "--shot", scratch.path("a.png"), plan});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("Split=Z"));
}

}  // namespace
}  // namespace shardwise::view
