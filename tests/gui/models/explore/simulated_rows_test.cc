// The strategy table ranks as `shardwise plan` does.
#include "gui/models/explore/simulated_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "answers/plan_answer.h"
#include "answers/question_of_plan.h"
#include "answers/simulated_steps.h"
#include "gui/models/explore/columns.h"
#include "gui/models/explore/explored_rows.h"
#include "gui/models/session/session.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

/// Cells of a row as people read them.
std::vector<std::string> cells_of(const sim::PricedLayout& row) {
  std::vector<std::string> cells;
  for (const sim::PlanColumn& each : sim::plan_columns()) {
    if (each.key != "rank") cells.push_back(each.text(row));
  }
  return cells;
}

/// The first rows of the table are those of the command, to the last digit.
void expect_as_planned(const AppState& state) {
  const sim::PlanQuestion question = sim::question_of(state.plan, sim::kSimulated);
  const Result<sim::PlanAnswer> planned = sim::answer(question);
  ASSERT_TRUE(planned);
  ASSERT_FALSE(planned->best.empty());
  const Answer& answer = state.answer;
  ASSERT_GE(answer.ranked.size(), planned->best.size());
  for (std::size_t i = 0; i < planned->best.size(); ++i) {
    const sim::PlanRow& theirs = planned->best[i];
    const LayoutRow& ours = answer.rows[answer.ranked[i]];
    ASSERT_TRUE(theirs.simulated);
    EXPECT_EQ(ours.simulated, theirs.simulated) << i;
    EXPECT_EQ(cells_of(priced(answer, ours)), cells_of(sim::priced(theirs, 0, *planned))) << i;
  }
  const auto simulated = std::ranges::count_if(
      answer.rows, [](const LayoutRow& row) { return row.simulated.has_value(); });
  EXPECT_EQ(static_cast<std::size_t>(simulated), planned->best.size());
}

class SimulatedRows : public testing::Test {
 protected:
  SimulatedRows() { session_.settle(); }
  const AppState& state() const { return session_.state(); }

  Session session_{test::two_node_plan()};
};

TEST_F(SimulatedRows, LeadTheTableAsTheCommandRanksThem) { expect_as_planned(state()); }

TEST(SimulatedRowsOfAPicture, HaveTheSelectedStepAsItIsShown) {
  Session session(test::two_node_plan(), Timing::fitting);
  session.settle();
  const AppState& state = session.state();
  expect_as_planned(state);
  session.select_row(state.answer.ranked.front());
  session.settle();
  ASSERT_TRUE(state.simulated);
  EXPECT_EQ(state.answer.rows[state.answer.ranked.front()].simulated, state.simulated->step_time);
}

// The tiles have the exact time: no bound stands beside them, whenever the row was selected.
TEST(SelectedRowOfAPicture, HasItsExactTime) {
  Session session(test::two_node_plan(), Timing::fitting);
  session.settle();
  const AppState& state = session.state();
  const auto slowest =
      std::ranges::find_if(state.answer.ranked.rbegin(), state.answer.ranked.rend(),
                           [&](std::uint32_t row) { return state.answer.rows[row].bound; });
  ASSERT_NE(slowest, state.answer.ranked.rend());
  session.select_row(*slowest);
  session.settle();
  const LayoutRow& row = state.answer.rows[state.selected];
  EXPECT_EQ(row.layout, state.plan.layout);
  EXPECT_FALSE(row.bound);
  EXPECT_EQ(row.time, state.report.step_time);
  EXPECT_NEAR(row.mfu, state.report.mfu, 1e-9);
}

TEST(SimulatedRowsOfAPicture, AreLeftOutOfOneThatShowsNone) {
  Session session(test::two_node_plan(), Timing::fitting, Workspace::memory);
  session.settle();
  const AppState& state = session.state();
  EXPECT_TRUE(state.simulated);
  EXPECT_FALSE(state.neighbours_known);
  EXPECT_GT(state.answer.counts.fit, 0);
  EXPECT_TRUE(std::ranges::none_of(state.answer.rows,
                                   [](const LayoutRow& row) { return row.simulated.has_value(); }));
}

TEST_F(SimulatedRows, FollowTheMemoryThatIsHeldBack) {
  Plan plan = state().plan;
  plan.cluster.gpu.hbm_bytes = plan.cluster.gpu.hbm_bytes / 8;
  session_.change(plan, Change::question);
  session_.settle();
  const std::vector<std::uint32_t> before = state().answer.ranked;
  plan.job.held_back = 0.5;
  session_.change(plan, Change::verdict);
  session_.settle();
  EXPECT_NE(state().answer.ranked, before);
  expect_as_planned(state());
}

TEST_F(SimulatedRows, HaveAColumnOfTheModelBeside) {
  const std::size_t model = *find_column("model");
  const auto tells = [&](const Answer& answer) {
    const std::vector<std::size_t> telling = telling_columns(answer);
    return std::ranges::find(telling, model) != telling.end();
  };
  EXPECT_TRUE(tells(state().answer));
  Answer answer = state().answer;
  put_simulated(answer, {}, {});
  EXPECT_FALSE(tells(answer));
}

TEST_F(SimulatedRows, LeaveTheBestByTheModelToWhyNot) {
  ASSERT_TRUE(state().winner);
  for (const LayoutRow& row : state().answer.rows) {
    if (row.fit == Fit::fits) {
      EXPECT_LE(state().winner->step_time.value(), row.time.value() * (1 + 1e-12));
    }
  }
}

TEST_F(SimulatedRows, AreAsBeforeOnceTheStepsAreGone) {
  Answer answer = state().answer;
  const LayoutRow with = answer.rows[answer.ranked.front()];
  ASSERT_TRUE(with.simulated);
  put_simulated(answer, {}, {});
  const auto same = std::ranges::find(answer.rows, with.layout, &LayoutRow::layout);
  EXPECT_FALSE(same->simulated);
  EXPECT_NEAR(same->mfu * same->time.value(), with.mfu * with.simulated->value(), 1e-12);
  EXPECT_NEAR(same->dollars_per_1e9_tokens / same->time.value(),
              with.dollars_per_1e9_tokens / with.simulated->value(), 1e-9);
  EXPECT_EQ(best_by_model(answer), answer.ranked.front());
}

TEST(RowsToSimulate, AreNoneWhereStepsAreTooLong) {
  Session session(test::small_plan());
  session.settle();
  Plan plan = session.state().plan;
  EXPECT_FALSE(rows_to_simulate(session.state().answer, plan).empty());
  plan.job.global_batch_size = 10'000'000;
  EXPECT_TRUE(rows_to_simulate(session.state().answer, plan).empty());
}

}  // namespace
}  // namespace shardwise::view
