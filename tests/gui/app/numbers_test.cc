// House-wide: every number has an explanation, every text its glyphs.
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "gui/models/window/explain_model.h"
#include "gui/panels/panels.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

bool has_digit(std::string_view words) {
  return std::ranges::any_of(words, [](unsigned char c) { return std::isdigit(c) != 0; });
}

Plan plan_of(int which) {
  switch (which) {
    case 0:
      return test::small_plan();
    case 1:
      return test::small_plan(1);
    default:
      return test::plan_that_cannot_fit();
  }
}

class Numbers : public testing::TestWithParam<int> {};

TEST_P(Numbers, EachHasAnExplanation) {
  Session session(plan_of(GetParam()));
  Stage stage(FontChoice::built_in, 1);
  stage.probes().keep_texts();
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    session.set_workspace(static_cast<Workspace>(w));
    draw_settled(stage, session, kWideWindow);
    ASSERT_TRUE(session.state().explained);
    std::size_t numbers = 0;
    for (const Probes::Words& each : stage.probes().texts()) {
      if (!has_digit(each.words)) continue;
      const std::string* const subject = stage.probes().reason_at(each.place.centre());
      if (subject == nullptr && each.words.find("Ctrl") != std::string::npos) continue;  // a key
      ASSERT_NE(subject, nullptr) << each.words << " in " << kWorkspaceNames[w];
      const WhyNumber why = why_subject(*session.state().explained, *subject);
      EXPECT_FALSE(why.formula.empty()) << *subject << ": " << each.words;
      ++numbers;
    }
    EXPECT_GT(numbers, 15U) << kWorkspaceNames[w];
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Numbers, testing::Range(0, 3));

TEST(Reasons, OfTilesAndColumnsAreTheirOwnAndNotTheirPanels) {
  Session session(test::small_plan());
  Stage stage(FontChoice::built_in, 1);
  draw_settled(stage, session, kWideWindow);
  const auto reason = [&](const std::string& probe) {
    const auto place = stage.probes().find(probe);
    EXPECT_TRUE(place) << probe;
    const std::string* const subject = place ? stage.probes().reason_at(place->centre()) : nullptr;
    return subject == nullptr ? std::string() : *subject;
  };
  EXPECT_EQ(reason("summary.step"), "tile.step");
  EXPECT_EQ(reason("summary.error"), "tile.error");
  EXPECT_EQ(reason("what_if.tp.value"), "field.tp");
  EXPECT_EQ(reason("memory.pass.weights"), "memory.pass.weights");
  // A right click asks for it.
  const auto tile = stage.probes().find("summary.mfu");
  ASSERT_TRUE(tile);
  ImGui::GetIO().AddMousePosEvent(tile->centre().x, tile->centre().y);
  stage.frame(session, kWideWindow);
  for (const bool down : {true, false}) {
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Right, down);
    stage.frame(session, kWideWindow);
  }
  EXPECT_EQ(session.state().subject, "tile.mfu");
  // It stays beside the number, in the same workspace, until it is closed.
  draw_settled(stage, session, kWideWindow);
  EXPECT_EQ(session.state().workspace, Workspace::explore);
  EXPECT_TRUE(stage.probes().find("details.subject"));
  EXPECT_EQ(run_command(session, "app.close"), "");
  draw_settled(stage, session, kWideWindow);
  EXPECT_FALSE(stage.probes().find("details.subject"));
}

class Glyphs : public testing::TestWithParam<FontChoice> {};

TEST_P(Glyphs, OfEveryTextThatIsDrawnExist) {
  Session session(test::small_plan());
  Stage stage(GetParam(), 1);
  stage.probes().keep_texts();
  std::string all;
  const auto take = [&] {
    draw_settled(stage, session, kWideWindow);
    for (const Probes::Words& each : stage.probes().texts()) all += each.words;
  };
  for (std::size_t w = 0; w < kWorkspaces; ++w) {
    session.set_workspace(static_cast<Workspace>(w));
    take();
  }
  EXPECT_EQ(run_command(session, "app.help"), "");
  take();
  for (const Command& each : commands()) {
    all += std::string(each.text) + std::string(each.key) + std::string(each.argument);
  }
  ASSERT_GT(all.size(), 2000U);
  for (ImFont* const font :
       {stage.fonts().body, stage.fonts().heading, stage.fonts().tile, stage.fonts().number}) {
    const char* at = all.c_str();
    while (*at != '\0') {
      unsigned int letter = 0;
      at += ImTextCharFromUtf8(&letter, at, nullptr);
      if (letter < ' ') continue;
      // Of a letter that a font has not, another is drawn (gui/draw/fonts.cc).
      const int drawn = font->RemapPairs.GetInt(letter, static_cast<int>(letter));
      ASSERT_TRUE(font->IsGlyphInFont(static_cast<ImWchar>(drawn))) << letter;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fonts, Glyphs,
                         testing::Values(FontChoice::built_in, FontChoice::installed));

TEST(Commands, WithAKeyAreInThePalette) {
  Session session(test::small_plan());
  Stage stage(FontChoice::built_in, 1);
  for (const Command& each : commands()) {
    EXPECT_EQ(run_command(session, "app.palette " + std::string(each.name)), "");
    draw_settled(stage, session, kWideWindow);
    // Those without a key are of scripts.
    EXPECT_EQ(stage.probes().find("palette." + std::string(each.name)).has_value(),
              !each.key.empty())
        << each.name;
    EXPECT_EQ(run_command(session, "app.close"), "");
  }
}

}  // namespace
}  // namespace shardwise::view
