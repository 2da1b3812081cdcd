// What a drag leaves behind: undo, the ghost, the front, the numbers to compare with.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gui/models/explore/explored_rows.h"
#include "gui/models/session/session.h"
#include "gui/models/window/summary_model.h"
#include "planner/estimate/estimate.h"
#include "planner/search/search.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class Selection : public testing::Test {
 protected:
  Selection() { session_.settle(); }
  const AppState& state() const { return session_.state(); }
  std::set<std::uint32_t> front() const {
    std::set<std::uint32_t> rows;
    for (std::uint32_t i = 0; i < state().answer.rows.size(); ++i) {
      if (state().answer.rows[i].front) rows.insert(i);
    }
    return rows;
  }
  Session session_{test::small_plan()};
};

TEST_F(Selection, OneDragIsOneEntryOfUndo) {
  const std::string before = to_json(state().plan);
  session_.hold_pointer(true);
  for (const char* const tp : {"2", "4", "8"}) EXPECT_EQ(session_.type_field("tp", tp), "");
  session_.hold_pointer(false);
  EXPECT_EQ(state().plan.layout.tp, 8);
  session_.undo();
  EXPECT_EQ(to_json(state().plan), before);
  EXPECT_FALSE(session_.can_undo());
  session_.redo();
  EXPECT_EQ(state().plan.layout.tp, 8);
}

TEST_F(Selection, TwoDragsAreTwoEntries) {
  for (const char* const tp : {"2", "4"}) {
    session_.hold_pointer(true);
    EXPECT_EQ(session_.type_field("tp", tp), "");
    session_.hold_pointer(false);
  }
  session_.undo();
  EXPECT_EQ(state().plan.layout.tp, 2);
  session_.undo();
  EXPECT_EQ(state().plan.layout.tp, 1);
}

TEST_F(Selection, ADragBackToItsBeginningNeverHappened) {
  session_.hold_pointer(true);
  for (const char* const tp : {"4", "1"}) EXPECT_EQ(session_.type_field("tp", tp), "");
  EXPECT_FALSE(session_.can_undo());
  EXPECT_FALSE(state().exploring.ghost);
  EXPECT_EQ(session_.type_field("tp", "2"), "");
  session_.hold_pointer(false);
  session_.undo();
  EXPECT_EQ(state().plan.layout.tp, 1);
}

TEST_F(Selection, ADragLeavesAGhostWhereTheLayoutWas) {
  const Layout before = state().plan.layout;
  const StepReport report = state().report;
  session_.hold_pointer(true);
  EXPECT_EQ(session_.type_field("tp", "2"), "");
  EXPECT_EQ(session_.type_field("tp", "4"), "");
  ASSERT_TRUE(state().exploring.ghost);
  const Ghost& ghost = *state().exploring.ghost;
  EXPECT_EQ(ghost.numbers.estimated.layout, before);
  EXPECT_EQ(ghost.numbers.estimated.verdict.point, report.verdict.point);
  ASSERT_LT(ghost.row, state().answer.rows.size());
  EXPECT_EQ(state().answer.rows[ghost.row].layout, before);
  // The selected row is in its new place at once.
  EXPECT_EQ(state().answer.rows[state().selected].layout, state().plan.layout);
  EXPECT_NE(std::ranges::find(state().shown, state().selected), state().shown.end());
  session_.hold_pointer(false);
  session_.select_row(state().shown[0]);
  EXPECT_FALSE(state().exploring.ghost);
}

TEST_F(Selection, AGhostOfAnotherQuestionHasNoRow) {
  EXPECT_EQ(session_.type_field("sequence_length", "4096"), "");
  session_.settle();
  ASSERT_TRUE(state().exploring.ghost);
  EXPECT_FALSE(state().exploring.ghost->same_question);
  EXPECT_EQ(state().exploring.ghost->row, state().answer.rows.size());
}

TEST_F(Selection, HoldingMemoryBackMovesTheFrontAsAFreshExplorationDoes) {
  for (const char* const percent : {"60", "30", "0"}) {
    EXPECT_EQ(session_.type_field("held_back", percent), "");
    EXPECT_TRUE(state().current());
    const Answer fresh = explored_rows(state().plan, state().report);
    std::set<std::uint32_t> wanted;
    for (std::uint32_t i = 0; i < fresh.rows.size(); ++i) {
      if (fresh.rows[i].front) wanted.insert(i);
    }
    EXPECT_EQ(front(), wanted) << percent;
    EXPECT_EQ(state().answer.counts.fit, fresh.counts.fit);
    for (const LayoutRow& row : state().answer.rows) {
      EXPECT_TRUE(row.fit != Fit::fits || row.memory <= state().answer.usable);
    }
  }
}

TEST_F(Selection, ThePriceOfAnHourChangesCostsInTheFrame) {
  session_.worker().hold();
  EXPECT_EQ(session_.type_field("price", "5.38"), "");
  const Answer fresh = explored_rows(state().plan, state().report);
  ASSERT_EQ(fresh.rows.size(), state().answer.rows.size());
  for (std::size_t i = 0; i < fresh.rows.size(); ++i) {
    const LayoutRow& row = state().answer.rows[i];
    // Of the step, which is simulated of some.
    const double wanted = fresh.rows[i].dollars_per_1e9_tokens * (row.step() / row.time);
    EXPECT_NEAR(row.dollars_per_1e9_tokens, wanted, 1e-9 * wanted);
  }
  session_.worker().release();
}

TEST_F(Selection, OneOfEachDegreesIsWhatASearchLists) {
  ExploreView view = state().explore;
  view.one_of_degrees = view.only_fitting = true;
  session_.set_table(view);
  SearchRequest request;
  request.model = &state().plan.model;
  request.cluster = &state().plan.cluster;
  request.job = &state().plan.job;
  request.engines = {&state().plan.engine};
  request.top = 10'000;
  const Result<SearchResult> found = search(request);
  ASSERT_TRUE(found);
  ASSERT_EQ(state().shown.size(), found->best.size());
  Answer by_model = state().answer;
  put_simulated(by_model, {}, {});  // a search simulates none
  const std::vector<std::uint32_t> shown = shown_rows(by_model, view);
  for (std::size_t i = 0; i < found->best.size(); ++i) {
    EXPECT_EQ(by_model.rows[shown[i]].layout, found->best[i].layout) << i;
  }
}

TEST_F(Selection, TilesSayWhatChangedSinceThePin) {
  session_.toggle_pin();
  ASSERT_NE(state().exploring.baseline(), nullptr);
  EXPECT_EQ(session_.type_field("tp", "4"), "");
  const StepReport& base = state().exploring.pinned->estimated;
  for (const Tile& tile : summary_tiles(state().plan, state().report, nullptr, &base)) {
    if (tile.id == "step") {
      const double more = (state().report.step_time - base.step_time).value();
      EXPECT_EQ(tile.change.front(), more < 0 ? '-' : '+');
      EXPECT_EQ(tile.change_tone, more < 0 ? Tone::good : Tone::bad);
    }
    if (tile.id == "mfu") {
      EXPECT_EQ(tile.change_tone, state().report.mfu > base.mfu ? Tone::good : Tone::bad);
    }
  }
  for (const Tile& tile : summary_tiles(state().plan, base, nullptr, &base))
    EXPECT_EQ(tile.change, "");
  session_.toggle_pin();
  EXPECT_FALSE(state().exploring.pinned);
}

}  // namespace
}  // namespace shardwise::view
