// Small windows and large scales: what has no room gives way in an order that keeps numbers whole.
#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/commands/commands.h"
#include "gui/models/memory/memory_course.h"
#include "gui/models/memory/memory_model.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/simulate.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

/// The same window, drawn at a size and a scale.
class Room : public testing::Test {
 protected:
  void draw(Workspace workspace, ImVec2 size) {
    session_.set_workspace(workspace);
    stage_.probes().keep_texts();
    draw_settled(stage_, session_, size);
  }
  /// Of a run whose operations took other times.
  void compare() {
    StepReport measured = sim::simulate(session_.state().plan).report;
    measured.origin = "measured";
    for (OperationTime& each : measured.timeline->operations) each.time = each.time * 1.1;
    session_.compare_with(std::make_shared<const Compared>(compared_report(measured, "m.json")));
  }
  Probes::Place at(const std::string& name) const {
    const auto place = stage_.probes().find(name);
    EXPECT_TRUE(place) << name;
    return place.value_or(Probes::Place{});
  }
  void expect_inside(const std::string& inner, const std::string& outer) const {
    const Probes::Place in = at(inner);
    const Probes::Place out = at(outer);
    EXPECT_GE(in.least.x, out.least.x) << inner;
    EXPECT_LE(in.most.x, out.most.x) << inner;
    EXPECT_GE(in.least.y, out.least.y) << inner;
    EXPECT_LE(in.most.y, out.most.y) << inner;
  }
  bool reads(const std::string& words) const {
    return std::ranges::find(stage_.probes().texts(), words, &Probes::Words::words) !=
           stage_.probes().texts().end();
  }

  Session session_{test::two_stage_plan(), Timing::fitting};
  Stage stage_{FontChoice::built_in, 1};
};

TEST_F(Room, AtTwiceTheScaleMemoryHasBarsAndSlidersTheirValues) {
  stage_.set_scale(2);
  draw(Workspace::memory, {1600, 1000});
  expect_inside("memory.pass", "memory");
  expect_inside("what_if.tp.value", "what_if");
  expect_inside("what_if.vpp.value", "what_if");
}

TEST_F(Room, NamesOfPhasesAreWholeOverNarrowColumns) {
  stage_.set_scale(2);
  session_.set_workspace(Workspace::memory);
  ASSERT_EQ(run_command(session_, "panel.show memory"), "");
  draw(Workspace::memory, {1600, 1000});
  int names = 0;
  for (const Probes::Words& each : stage_.probes().texts()) {
    const bool named = each.words == "after" || each.words == "init" || each.words == "after init";
    if (!named) continue;
    ++names;
    EXPECT_GT(each.place.most.x - each.place.least.x, static_cast<float>(each.words.size()) * 12)
        << each.words;
  }
  EXPECT_GT(names, 0);
}

TEST_F(Room, TheTableKeepsItsRowsBesideWhatIsCompared) {
  compare();
  for (const ImVec2 size : {ImVec2(1280, 720), ImVec2(1280, 800)}) {
    draw(Workspace::explore, size);
    expect_inside("explorer.row.5", "explorer");
    for (const std::string_view phase : kMemoryPhaseLabels) {
      EXPECT_TRUE(stage_.probes().find("memory.name." + std::string(phase))) << phase;
    }
    EXPECT_TRUE(stage_.probes().find("compare")) << size.y;
  }
}

TEST_F(Room, ANarrowComparisonHasItsButtonsItsNamesAndItsBars) {
  compare();
  draw(Workspace::scaling, {1280, 720});
  for (const std::string button : {"worst", "calibrate", "close"}) {
    expect_inside("compare." + button, "compare");
  }
  const auto& rows = session_.state().compare.view->rows[1];
  ASSERT_GT(rows.size(), 2U);
  std::set<std::string> names;
  for (std::size_t i = 1; i <= rows.size(); ++i) {
    const std::string row = "compare.row." + std::to_string(i);
    expect_inside(row + ".name", "compare");
    expect_inside(row + ".bar", "compare");
    // All of it is drawn, and no other row reads the same.
    EXPECT_TRUE(reads(rows[i - 1].name)) << rows[i - 1].name;
    EXPECT_TRUE(names.insert(rows[i - 1].name).second) << rows[i - 1].name;
  }
}

TEST_F(Room, HeadsOfTheScalingTableAreWholeOverTheirColumns) {
  draw(Workspace::scaling, {1280, 720});
  float end = 0;
  for (const std::string head :
       {"GPUs", "step", "tokens/s", "MFU", "GiB", "$/1e9 tok", "per GPU"}) {
    const Probes::Place place = at("scaling.head." + head);
    EXPECT_GT(place.least.x, end) << head;
    end = place.most.x;
  }
}

TEST_F(Room, BuffersAtThePeakHaveTheirBytesAndUnit) {
  session_.set_workspace(Workspace::memory);
  session_.settle();
  ASSERT_EQ(run_command(session_, "memory.buffers activations"), "");
  draw(Workspace::memory, {1280, 720});
  const Probes::Place canvas = at("course.canvas");
  const auto lines = live_lines(*session_.state().lanes->report,
                                session_.state().lanes->memory.stage, MemoryGroup::activations);
  ASSERT_FALSE(lines.empty());
  const LiveLine& first = lines.front();
  const Probes::Place bytes = at("course.live." + first.label + ".bytes");
  EXPECT_LT(bytes.most.x, canvas.least.x);
  EXPECT_GT(bytes.least.x, at("course.live." + first.label).least.x);
  EXPECT_TRUE(reads(format_bytes(first.bytes))) << format_bytes(first.bytes);
}

TEST_F(Room, MarksOfTheCheapestCellsCoverNoDigits) {
  stage_.set_scale(2);
  draw(Workspace::scaling, {1600, 1000});
  int marks = 0;
  for (const auto& [name, mark] : stage_.probes().all()) {
    if (!name.starts_with("scaling.cheapest.")) continue;
    ++marks;
    for (const Probes::Words& each : stage_.probes().texts()) {
      if (!each.words.ends_with(" %")) continue;
      const bool apart = each.place.least.x >= mark.most.x || each.place.most.x <= mark.least.x ||
                         each.place.least.y >= mark.most.y || each.place.most.y <= mark.least.y;
      EXPECT_TRUE(apart) << name << " over " << each.words;
    }
  }
  EXPECT_GT(marks, 0);
}

TEST_F(Room, AReportWithoutSpansSaysSoOnTheTimeline) {
  draw(Workspace::timeline, {1280, 720});
  EXPECT_FALSE(stage_.probes().find("timeline.no_lanes"));
  compare();
  draw(Workspace::timeline, {1280, 720});
  EXPECT_TRUE(reads("the measured report has no spans: compare with a trace to see its lanes"));
}

}  // namespace
}  // namespace shardwise::view
