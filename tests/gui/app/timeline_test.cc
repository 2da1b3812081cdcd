// The mouse on the timeline, by events and probes.
#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/draw/theme.h"
#include "gui/models/commands/commands.h"
#include "gui/models/timeline/stretch_model.h"
#include "tests/gui/app/window_sizes.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

Plan pipeline() {
  Plan plan = test::four_stage_plan();
  plan.job.global_batch_size = 8;
  return plan;
}

class TimelineMouse : public testing::Test {
 protected:
  TimelineMouse() {
    session_.set_workspace(Workspace::timeline);
    draw_settled(stage_, session_, kWideWindow);
  }
  void frame() { stage_.frame(session_, kWideWindow); }
  void settle() { draw_settled(stage_, session_, kWideWindow); }
  void move(ImVec2 at) {
    ImGui::GetIO().AddMousePosEvent(at.x, at.y);
    frame();
  }
  void press(int button, bool down) {
    ImGui::GetIO().AddMouseButtonEvent(button, down);
    frame();
  }
  void drag(int button, ImVec2 from, ImVec2 to) {
    move(from);
    press(button, true);
    move({(from.x + to.x) / 2, (from.y + to.y) / 2});
    move(to);
    press(button, false);
    frame();
  }
  void key(ImGuiKey key) {
    ImGui::GetIO().AddKeyEvent(key, true);
    frame();
    ImGui::GetIO().AddKeyEvent(key, false);
    frame();
  }
  void wheel(float notches, ImGuiKey modifier = ImGuiKey_None) {
    if (modifier != ImGuiKey_None) ImGui::GetIO().AddKeyEvent(modifier, true);
    ImGui::GetIO().AddMouseWheelEvent(0, notches);
    frame();
    if (modifier != ImGuiKey_None) ImGui::GetIO().AddKeyEvent(modifier, false);
    frame();
  }
  Probes::Place probe(const std::string& name) const { return *stage_.probes().find(name); }
  const AppState& state() const { return session_.state(); }
  double seconds_at(float x) const {
    const Probes::Place canvas = probe("timeline.canvas");
    return state().range.from + static_cast<double>(x - canvas.least.x) /
                                    (canvas.most.x - canvas.least.x) * state().range.length();
  }
  float x_of(double seconds) const {
    const Probes::Place canvas = probe("timeline.canvas");
    return canvas.least.x +
           static_cast<float>((seconds - state().range.from) / state().range.length()) *
               (canvas.most.x - canvas.least.x);
  }
  /// The block of stage 0 that is widest.
  std::pair<std::size_t, std::size_t> widest_block() const {
    const Lane& lane = state().lanes->lanes.front();
    std::pair<std::size_t, std::size_t> widest = lane.block(0);
    const auto length = [&](std::pair<std::size_t, std::size_t> block) {
      return lane.spans.end[block.second - 1] - lane.spans.active_start[block.first];
    };
    for (std::size_t b = 0; b < lane.blocks.size(); ++b) {
      if (length(lane.block(b)) > length(widest)) widest = lane.block(b);
    }
    return widest;
  }

  Session session_{pipeline()};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(TimelineMouse, ZoomsAtThePointerWithControlAndTheWheel) {
  const Probes::Place lane = probe("timeline.1.compute");
  const ImVec2 at(lane.least.x + 0.3F * (lane.most.x - lane.least.x), lane.centre().y);
  move(at);
  const double before = seconds_at(at.x);
  wheel(3, ImGuiMod_Ctrl);
  EXPECT_LT(state().range.length(), 0.6 * state().lanes->length);
  const double pixel = state().range.length() / (lane.most.x - lane.least.x);
  EXPECT_NEAR(seconds_at(at.x), before, pixel);
}

TEST_F(TimelineMouse, ZoomsByThePlainWheelWhereThatIsWanted) {
  move(probe("timeline.1.compute").centre());
  wheel(1);
  EXPECT_EQ(state().range.length(), state().lanes->length);
  run_command(session_, "timeline.wheel");
  wheel(1);
  EXPECT_LT(state().range.length(), state().lanes->length);
}

TEST_F(TimelineMouse, MeasuresWhatIsDraggedOver) {
  const Probes::Place lane = probe("timeline.0.compute");
  const ImVec2 from(lane.least.x + 100, lane.most.y + 2);  // on no block's edge
  const ImVec2 to(lane.least.x + 500, lane.most.y + 2);
  drag(0, from, to);
  ASSERT_TRUE(state().timeline.measured);
  const double pixel = state().range.length() / (lane.most.x - lane.least.x);
  EXPECT_NEAR(state().timeline.measured->from, seconds_at(from.x), pixel);
  EXPECT_NEAR(state().timeline.measured->to, seconds_at(to.x), pixel);
  EXPECT_TRUE(stage_.probes().find("timeline.readout"));
  key(ImGuiKey_Escape);
  EXPECT_FALSE(state().timeline.measured);
}

TEST_F(TimelineMouse, PansWithTheRightButton) {
  run_command(session_, "timeline.zoom 0.25 0.5");
  frame();
  const TimeRange before = state().range;
  const Probes::Place lane = probe("timeline.0.compute");
  drag(1, lane.centre(), {lane.centre().x - 100, lane.centre().y});
  const double moved = 100.0 / (lane.most.x - lane.least.x) * before.length();
  EXPECT_NEAR(state().range.from, before.from + moved, 0.02 * before.length());
  EXPECT_NEAR(state().range.length(), before.length(), 1e-9);
}

TEST_F(TimelineMouse, ZoomsToWhatTheMiddleButtonIsDraggedOver) {
  const Probes::Place lane = probe("timeline.0.compute");
  const ImVec2 from(lane.least.x + 300, lane.centre().y);
  const ImVec2 to(lane.least.x + 500, lane.centre().y);
  const double begin = seconds_at(from.x);
  const double end = seconds_at(to.x);
  drag(2, from, to);
  const double pixel = state().lanes->length / (lane.most.x - lane.least.x);
  EXPECT_NEAR(state().range.from, begin, pixel);
  EXPECT_NEAR(state().range.to, end, pixel);
}

TEST_F(TimelineMouse, ChoosesTheSpanThatIsClicked) {
  const auto [first, last] = widest_block();
  const Lane& lane = state().lanes->lanes.front();
  const double middle = (lane.spans.active_start[first] + lane.spans.end[last - 1]) / 2;
  move({x_of(middle), probe("timeline.0.compute").centre().y});
  press(0, true);
  press(0, false);
  frame();
  ASSERT_TRUE(state().timeline.chosen);
  EXPECT_EQ(state().timeline.chosen->lane, name_of(lane));
  EXPECT_LE(lane.spans.start[state().timeline.chosen->span], middle + 1e-3);
  EXPECT_TRUE(stage_.probes().find("timeline.chosen"));
  EXPECT_TRUE(stage_.probes().find("selection.span"));
  key(ImGuiKey_Period);
  key(ImGuiKey_Comma);
  key(ImGuiKey_M);
  EXPECT_EQ(state().timeline.marks.size(), 1U);
  key(ImGuiKey_P);
  EXPECT_TRUE(state().timeline.pinned.contains(name_of(lane)));
}

TEST_F(TimelineMouse, StretchesTheKindOfTheBlockWhoseEdgeIsDragged) {
  const auto [first, last] = widest_block();
  const Lane& lane = state().lanes->lanes.front();
  const double begin = lane.spans.active_start[first];
  const double end = lane.spans.end[last - 1];
  const std::string word = scale_word(lane, first);
  const float y = probe("timeline.0.compute").centre().y;
  const ImVec2 edge(x_of(end) - 1, y);
  const ImVec2 half(x_of(begin + (end - begin) / 2), y);
  drag(0, edge, half);
  settle();
  ASSERT_TRUE(state().timeline.stretch);
  EXPECT_EQ(state().timeline.stretch->word, word);
  EXPECT_FALSE(state().timeline.grabbed);
  EXPECT_FALSE(state().timeline.measured);
  const double pixel =
      state().lanes->length / (probe("timeline.canvas").most.x - probe("timeline.canvas").least.x);
  EXPECT_NEAR(state().timeline.stretch->factor, 0.5, 2 * pixel / (end - begin));
  const auto scale = read_scale(state().plan, word, state().timeline.stretch->factor);
  EXPECT_EQ(state().shown_step()->length, step_lanes(state().plan, {0, {*scale}}).length);
  EXPECT_TRUE(stage_.probes().find("timeline.worth"));
}

TEST_F(TimelineMouse, ScrollsLanesThatDoNotFit) {
  const ImVec2 low(1600, 520);
  run_command(session_, "timeline.lanes");
  for (int i = 0; i < 4; ++i) stage_.frame(session_, low);
  const Probes::Place canvas = probe("timeline.canvas");
  const Probes::Place before = probe("timeline.scroll");
  ImGui::GetIO().AddMousePosEvent(canvas.centre().x, canvas.least.y + 20);
  stage_.frame(session_, low);
  ImGui::GetIO().AddMouseWheelEvent(0, -1);
  stage_.frame(session_, low);
  stage_.frame(session_, low);
  EXPECT_GT(state().timeline.scroll, 0);
  // A bar says which part is in sight.
  const Probes::Place bar = probe("timeline.scroll");
  EXPECT_GT(bar.least.y, before.least.y);
  EXPECT_LT(bar.most.y - bar.least.y, canvas.most.y - canvas.least.y);
  EXPECT_GE(bar.least.x, canvas.most.x);
}

// A block of one colour fills its pixels; what waits is an outline of which the inside is the bed.
TEST_F(TimelineMouse, DrawsABlockInItsColour) {
  const auto [first, last] = widest_block();
  const Lane& lane = state().lanes->lanes.front();
  const double inside = lane.spans.active_start[first] +
                        (lane.spans.end[last - 1] - lane.spans.active_start[first]) / 6;
  const Image picture = stage_.picture(session_);
  const std::uint8_t* const pixel = picture.at(
      static_cast<int>(x_of(inside)), static_cast<int>(probe("timeline.0.compute").least.y) + 2);
  const std::array<int, 3> expected =
      sim::channels(sim::shade(lane.spans.kind[first], lane.spans.chunk[first], sim::Ground::dark));
  EXPECT_EQ(static_cast<int>(pixel[0]), expected[0]);
  EXPECT_EQ(static_cast<int>(pixel[1]), expected[1]);
  EXPECT_EQ(static_cast<int>(pixel[2]), expected[2]);
}

// Tensor parallel communication holds a layer's pass up: that share of its height has stripes, from
// the bottom up, and the rest has none.
TEST_F(TimelineMouse, HatchesTheExposedShareOfABlock) {
  const Lane& lane = state().lanes->lanes.front();
  std::size_t first = 0;
  while (first < lane.spans.size() && lane.exposed_in(first, first + 1) <= 0) ++first;
  ASSERT_LT(first, lane.spans.size());
  const double active = lane.spans.end[first] - lane.spans.active_start[first];
  const double share = lane.exposed_in(first, first + 1) / active;
  ASSERT_GT(share, 0.05);
  ASSERT_LT(share, 0.9);
  session_.set_range({lane.spans.active_start[first], lane.spans.end[first]});
  settle();
  const Image picture = stage_.picture(session_);
  const std::array<int, 3> red = sim::channels(theme_of(true).bad);
  const Probes::Place at = probe("timeline.0.compute");
  const auto stripes_at = [&](float y) {
    int found = 0;
    for (int x = static_cast<int>(at.least.x) + 20; x < static_cast<int>(at.most.x) - 20; ++x) {
      const std::uint8_t* const pixel = picture.at(x, static_cast<int>(y));
      bool same = true;
      for (std::size_t c = 0; c < 3; ++c) same = same && std::abs(pixel[c] - red[c]) < 40;
      found += same ? 1 : 0;
    }
    return found;
  };
  const float height = at.most.y - at.least.y;
  EXPECT_GT(stripes_at(at.most.y - 3), 50);
  EXPECT_EQ(stripes_at(at.most.y - static_cast<float>(share) * height - 4), 0);
}

TEST_F(TimelineMouse, GoesToTheSpanThatIsExposedLongestByAClickOnItsName) {
  const Probes::Place name = probe("timeline.worst");
  move(name.centre());
  press(0, true);
  press(0, false);
  settle();
  ASSERT_TRUE(state().timeline.chosen);
  EXPECT_EQ(*state().timeline.chosen, state().lanes->worst->span);
  EXPECT_LE(state().range.from, state().timeline.measured->from);
  EXPECT_GE(state().range.to, state().timeline.measured->to);
}

// Where not all lanes have room, those with exposed communication stay.
TEST(Timeline, KeepsTheLanesThatAreExposed) {
  Plan plan = test::two_node_plan();
  plan.job.global_batch_size = 8;
  Session session(plan);
  Stage stage(FontChoice::built_in, 1);
  session.set_workspace(Workspace::timeline);
  const ImVec2 low(1600, 420);
  draw_settled(stage, session, low);
  const StepLanes& step = *session.state().lanes;
  session.timeline().scroll = 1e3;  // to the end
  for (int i = 0; i < 2; ++i) stage.frame(session, low);
  std::size_t exposed = 0;
  std::size_t seen = 0;
  for (const Lane& lane : step.lanes) {
    if (lane.stream == Stream::compute || !is_exposed(step, lane)) continue;
    ++exposed;
    if (stage.probes().find("timeline." + text_of(name_of(lane)))) ++seen;
  }
  EXPECT_GT(exposed, 0U);
  EXPECT_GT(seen, 0U);
}

/// A step of 512 micro-batches: each has a pixel or two.
class LongStep : public TimelineMouse {
 protected:
  LongStep() {
    EXPECT_EQ(run_command(session_, "question.set global_batch_size 512"), "");
    settle();
  }
};

TEST_F(LongStep, OpensWithItsBeginItsMiddleAndItsEnd) {
  const double length = state().lanes->length;
  ASSERT_TRUE(stage_.probes().find("timeline.cut.1"));
  ASSERT_TRUE(stage_.probes().find("timeline.cut.2"));
  const Probes::Place canvas = probe("timeline.canvas");
  EXPECT_GT(probe("timeline.cut.1").least.x, canvas.least.x + 100);
  EXPECT_LT(probe("timeline.cut.2").most.x, canvas.most.x - 100);
  // A click in the last part chooses what is drawn there.
  const float y = probe("timeline.0.compute").centre().y;
  bool chosen = false;
  for (float x = canvas.most.x - 40; !chosen && x > probe("timeline.cut.2").most.x; x -= 15) {
    move({x, y});
    press(0, true);
    press(0, false);
    frame();
    chosen = state().timeline.chosen.has_value();
  }
  ASSERT_TRUE(chosen);
  const ChosenSpan span = *state().timeline.chosen;
  EXPECT_GT(state().lanes->find(span.lane)->spans.start[span.span], 0.8 * length);
  EXPECT_NEAR(state().range.length(), length, 1e-9 * length);
  EXPECT_EQ(run_command(session_, "timeline.cut"), "");
  settle();
  EXPECT_FALSE(stage_.probes().find("timeline.cut.1"));
}

TEST_F(LongStep, ZoomsIntoThePartUnderThePointer) {
  const Probes::Place canvas = probe("timeline.canvas");
  move({canvas.most.x - 60, probe("timeline.1.compute").centre().y});
  wheel(1, ImGuiMod_Ctrl);
  EXPECT_GT(state().range.from, 0.8 * state().lanes->length);
  EXPECT_LT(state().range.length(), 0.1 * state().lanes->length);
  EXPECT_FALSE(stage_.probes().find("timeline.cut.1"));
}

TEST_F(LongStep, GoesWhereTheStripOfTheWholeStepIsPressed) {
  const Probes::Place map = probe("timeline.map");
  move(map.centre());
  press(0, true);
  press(0, false);
  frame();
  const double middle = (state().range.from + state().range.to) / 2;
  EXPECT_NEAR(middle, state().lanes->length / 2, 0.01 * state().lanes->length);
  EXPECT_LT(state().range.length(), 0.51 * state().lanes->length);
}

}  // namespace
}  // namespace shardwise::view
