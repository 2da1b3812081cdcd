// No words are cut in a window of 1280 x 720 pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "gui/panels/panels.h"
#include "simulator/clock/simulate.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

constexpr ImVec2 kLowWindow(1280, 720);

/// Panel by panel in each workspace.
std::set<std::string> cut_in_low_window(Session& session, FontChoice font) {
  Stage stage(font, 1);
  stage.probes().keep_texts();
  std::set<std::string> cut;
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    for (const PanelFacts& panel : panel_facts()) {
      const auto workspace = static_cast<Workspace>(w);
      if (!panel.is_in(workspace) || !panel.shows(session.state())) continue;
      session.set_workspace(workspace);
      EXPECT_EQ(run_command(session, "panel.show " + std::string(panel.id)), "");
      draw_settled(stage, session, kLowWindow);
      for (const std::string& words : stage.probes().cut_texts()) {
        cut.insert(std::string(kWorkspaceNames[w]) + ": " + words);
      }
    }
  }
  return cut;
}

class LowWindow : public testing::TestWithParam<FontChoice> {};

TEST_P(LowWindow, ShowsAllWordsOfEveryPanel) {
  Session session(test::two_node_plan(), Timing::fitting);
  EXPECT_THAT(cut_in_low_window(session, GetParam()), testing::IsEmpty());
}

TEST_P(LowWindow, ShowsThemBesideWhatIsComparedToo) {
  Session session(test::two_node_plan(), Timing::fitting);
  StepReport measured = sim::simulate(session.state().plan).report;
  measured.origin = "measured";
  for (OperationTime& each : measured.timeline->operations) each.time = each.time * 1.1;
  session.compare_with(std::make_shared<const Compared>(compared_report(measured, "m.json")));
  session.follow("steps.jsonl");
  EXPECT_THAT(cut_in_low_window(session, GetParam()), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(OfEachFont, LowWindow,
                         testing::Values(FontChoice::built_in, FontChoice::installed));

}  // namespace
}  // namespace shardwise::view
