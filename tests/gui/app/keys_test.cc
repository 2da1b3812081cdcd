#include <fmt/format.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <set>
#include <string>

#include "gui/app/key_queue.h"
#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

class Keys : public testing::Test {
 protected:
  Keys() { draw_settled(stage_, session_, kSmallWindow); }
  void press(std::initializer_list<ImGuiKey> keys) {
    ImGuiIO& io = ImGui::GetIO();
    for (const ImGuiKey key : keys) io.AddKeyEvent(key, true);
    stage_.frame(session_, kSmallWindow);
    for (const ImGuiKey key : keys) io.AddKeyEvent(key, false);
    stage_.frame(session_, kSmallWindow);
    draw_settled(stage_, session_, kSmallWindow);
  }
  void type(const char* words) {
    ImGui::GetIO().AddInputCharactersUTF8(words);
    stage_.frame(session_, kSmallWindow);
    draw_settled(stage_, session_, kSmallWindow);
  }
  const AppState& state() const { return session_.state(); }

  Session session_{test::small_plan()};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(Keys, AreKeysOfImGuiAndUnique) {
  std::set<ImGuiKeyChord> chords;
  for (const Command& each : commands()) {
    if (each.key.empty()) continue;
    const ImGuiKeyChord chord = parse_chord(each.key);
    EXPECT_NE(chord, ImGuiKey_None) << each.key;
    EXPECT_TRUE(chords.insert(chord).second) << each.key;
  }
}

TEST_F(Keys, HaveTheNamesThatPeopleUse) {
  EXPECT_EQ(parse_chord("Esc"), ImGuiKey_Escape);
  EXPECT_EQ(parse_chord("Up"), ImGuiKey_UpArrow);
  EXPECT_EQ(parse_chord("["), ImGuiKey_LeftBracket);
  EXPECT_EQ(parse_chord("Shift+Down"), ImGuiMod_Shift | ImGuiKey_DownArrow);
  EXPECT_EQ(parse_chord("DownArrow"), ImGuiKey_DownArrow);
  EXPECT_EQ(parse_chord("Upward"), ImGuiKey_None);
}

TEST_F(Keys, OfThePageAreThoseOfTheCommands) {
  const std::string page = test::bytes_of_file("docs/viewer.md");
  std::string table;
  std::string of_scripts;
  for (const Command& each : commands()) {
    const std::string argument = each.argument.empty() ? "" : " " + std::string(each.argument);
    const std::string rest = fmt::format("`{}{}` | {} |\n", each.name, argument, each.text);
    if (each.key.empty()) {
      of_scripts += fmt::format("| {}", rest);
    } else {
      table += fmt::format("| `{}` | {}", each.key, rest);
    }
  }
  EXPECT_NE(page.find(table), std::string::npos) << "docs/viewer.md, Keys, is to have\n" << table;
  EXPECT_NE(page.find(of_scripts), std::string::npos) << "docs/viewer.md, Keys, and for scripts\n"
                                                      << of_scripts;
}

TEST_F(Keys, SwitchWorkspaces) {
  press({ImGuiKey_2});
  EXPECT_EQ(state().workspace, Workspace::memory);
  press({ImGuiKey_1});
  EXPECT_EQ(state().workspace, Workspace::explore);
}

TEST_F(Keys, WalkTheTable) {
  press({ImGuiKey_Home});
  EXPECT_EQ(state().selected, state().shown[0]);
  press({ImGuiKey_DownArrow});
  EXPECT_EQ(state().selected, state().shown[1]);
  press({ImGuiKey_UpArrow});
  EXPECT_EQ(state().selected, state().shown[0]);
}

TEST_F(Keys, UndoAndRedo) {
  press({ImGuiKey_Home});
  const Layout first = state().plan.layout;
  press({ImGuiKey_DownArrow});
  press({ImGuiMod_Ctrl, ImGuiKey_Z});
  EXPECT_EQ(state().plan.layout, first);
  press({ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiKey_Z});
  EXPECT_NE(state().plan.layout, first);
}

TEST_F(Keys, AreChordsWhereAFrameTakesLong) {
  // All of it between two frames: Ctrl down, K down, Ctrl up, K up.
  KeyQueue keys;
  keys.add_key(ImGuiKey_LeftCtrl, true, ImGuiMod_Ctrl);
  keys.add_key(ImGuiKey_K, true, ImGuiMod_Ctrl);
  keys.add_key(ImGuiKey_LeftCtrl, false, ImGuiKey_None);
  keys.add_key(ImGuiKey_K, false, ImGuiKey_None);
  int frames = 0;
  for (; keys.waiting(); ++frames) {
    keys.feed(ImGui::GetIO());
    stage_.frame(session_, kSmallWindow);
  }
  EXPECT_EQ(frames, 2);
  EXPECT_TRUE(state().palette_open);
  EXPECT_EQ(state().palette_text, "");  // not that of the command of the letter alone
}

TEST_F(Keys, KeepTheirOrderAmongTypedCharacters) {
  press({ImGuiMod_Ctrl, ImGuiKey_K});
  KeyQueue keys;
  for (const char letter : {'r', 'e', 'x'}) keys.add_character(static_cast<unsigned char>(letter));
  keys.add_key(ImGuiKey_Backspace, true, ImGuiKey_None);
  keys.add_key(ImGuiKey_Backspace, false, ImGuiKey_None);
  for (const char letter : {'d', 'o'}) keys.add_character(static_cast<unsigned char>(letter));
  while (keys.waiting()) {
    keys.feed(ImGui::GetIO());
    stage_.frame(session_, kSmallWindow);
  }
  draw_settled(stage_, session_, kSmallWindow);
  EXPECT_TRUE(stage_.probes().find("palette.question.redo"));
}

TEST_F(Keys, RunACommandOnceWhileTheyAreHeldButThoseThatWalk) {
  const bool fitting = state().explore.only_fitting;
  constexpr int kFrames = 61;  // a second: longer than ImGui waits before it repeats
  ImGui::GetIO().AddKeyEvent(ImGuiKey_X, true);
  for (int i = 0; i < kFrames; ++i) stage_.frame(session_, kSmallWindow);
  ImGui::GetIO().AddKeyEvent(ImGuiKey_X, false);
  stage_.frame(session_, kSmallWindow);
  EXPECT_NE(state().explore.only_fitting, fitting);
  press({ImGuiKey_Home});
  ASSERT_GT(state().shown.size(), 3U);
  ImGui::GetIO().AddKeyEvent(ImGuiKey_DownArrow, true);
  for (int i = 0; i < kFrames; ++i) stage_.frame(session_, kSmallWindow);
  EXPECT_NE(state().selected, state().shown[0]);
  EXPECT_NE(state().selected, state().shown[1]);
}

TEST_F(Keys, OpenThePaletteWhereEveryCommandIs) {
  press({ImGuiMod_Ctrl, ImGuiKey_K});
  ASSERT_TRUE(state().palette_open);
  type("redo");
  EXPECT_TRUE(stage_.probes().find("palette.question.redo"));
  press({ImGuiKey_Escape});
  EXPECT_FALSE(state().palette_open);
}

TEST_F(Keys, TypeACommandInThePalette) {
  press({ImGuiMod_Ctrl, ImGuiKey_K});
  type("table.sort memory");
  press({ImGuiKey_Enter});
  EXPECT_FALSE(state().palette_open);
  ASSERT_EQ(state().explore.sort.size(), 1U);
  EXPECT_LE(state().answer.rows[state().shown[0]].memory,
            state().answer.rows[state().shown[1]].memory);
}

TEST_F(Keys, OfCommandsThatNeedMoreOpenThePaletteWithTheirName) {
  press({ImGuiKey_O});
  ASSERT_TRUE(state().palette_open);
  EXPECT_EQ(state().palette_text, "table.sort ");
  type("memory");
  press({ImGuiKey_Enter});
  EXPECT_EQ(state().explore.sort.size(), 1U);
}

TEST_F(Keys, ChooseAPanelInThePalette) {
  press({ImGuiMod_Shift, ImGuiKey_I});
  ASSERT_TRUE(state().palette_open);
  EXPECT_TRUE(stage_.probes().find("palette.panel.show.heat"));
  // It has nothing to show before a run is read.
  EXPECT_FALSE(stage_.probes().find("palette.panel.show.metrics"));
  type("map");
  EXPECT_TRUE(stage_.probes().find("palette.panel.show.heat"));
  EXPECT_FALSE(stage_.probes().find("palette.panel.show.memory"));
  press({ImGuiKey_Enter});
  EXPECT_FALSE(state().palette_open);
  EXPECT_EQ(state().panel.front, "heat");
  EXPECT_EQ(state().workspace, Workspace::scaling);
}

TEST_F(Keys, ShowHelpWithEveryCommand) {
  press({ImGuiMod_Shift, ImGuiKey_Slash});
  ASSERT_TRUE(state().help_open);
  for (const Command& each : commands()) {
    EXPECT_EQ(stage_.probes().find("help." + std::string(each.name)).has_value(), !each.key.empty())
        << each.name;
  }
}

}  // namespace
}  // namespace shardwise::view
