#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "answers/question_of_plan.h"
#include "gui/models/commands/commands.h"
#include "gui/models/session/session.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

void expect_same(const Plan& a, const Plan& b) {
  EXPECT_TRUE(a.model == b.model && a.cluster == b.cluster && a.job == b.job &&
              a.engine == b.engine && a.layout == b.layout);
}

/// Of a question on one machine: links inside it alone, and 16 GPUs need a second.
struct WantedLevers {
  WantedLevers() : session(test::small_plan(4), Timing::fitting) {
    session.settle();
    session.want_levers();
    session.collect();
    session.settle();
  }
  const Levers& levers() const { return session.state().exploring.levers; }
  std::size_t row_of(const std::string& begin) const {
    const auto found = std::ranges::find_if(levers().rows, [&](const sim::HelpfulChange& each) {
      return each.text.starts_with(begin);
    });
    return static_cast<std::size_t>(found - levers().rows.begin());
  }
  Session session;
};

TEST(Levers, AreThoseOfTheCommandAndOtherEngines) {
  const WantedLevers wanted;
  const Levers& levers = wanted.levers();
  ASSERT_TRUE(levers.known);
  ASSERT_EQ(levers.problem, "");
  const sim::PlanQuestion question = sim::question_of(wanted.session.state().plan, 1);
  const sim::PlanAnswer answer = *sim::answer(question);
  EXPECT_EQ(levers.rows.front().step, answer.best.front().step());
  EXPECT_EQ(levers.rows.front().plan.layout, answer.best.front().candidate.layout);
  for (const sim::HelpfulChange& each : sim::helpful_changes(question, answer)) {
    const std::size_t row = wanted.row_of(each.text);
    ASSERT_LT(row, levers.rows.size()) << each.text;
    EXPECT_EQ(levers.rows[row].step, each.step) << each.text;
  }
  EXPECT_LT(wanted.row_of("engine "), levers.rows.size());
  EXPECT_TRUE(std::ranges::is_sorted(levers.rows.begin() + 1, levers.rows.end(),
                                     std::ranges::greater(), &sim::HelpfulChange::faster));
}

TEST(Levers, ShowTheirQuestionWithItsBestLayoutAndComeBack) {
  WantedLevers wanted;
  const Plan before = wanted.session.state().plan;
  const std::size_t row = wanted.row_of("8 GPUs");
  ASSERT_LT(row, wanted.levers().rows.size());
  const Plan expected = wanted.levers().rows[row].plan;
  EXPECT_EQ(run_command(wanted.session, "levers.take " + std::to_string(row + 1)), "");
  wanted.session.settle();
  EXPECT_EQ(wanted.session.state().plan.cluster.gpus, 8);
  expect_same(wanted.session.state().plan, expected);
  EXPECT_FALSE(wanted.levers().known);  // of another question
  EXPECT_EQ(run_command(wanted.session, "question.undo"), "");
  wanted.session.settle();
  expect_same(wanted.session.state().plan, before);
}

TEST(Levers, AreKeptForAnotherLayoutAndDroppedForAnotherQuestion) {
  WantedLevers wanted;
  EXPECT_EQ(run_command(wanted.session, "layout.select 2"), "");
  wanted.session.settle();
  EXPECT_TRUE(wanted.levers().known);
  EXPECT_EQ(run_command(wanted.session, "levers.take 1"), "");
  EXPECT_EQ(wanted.session.state().plan.layout, wanted.levers().rows.front().plan.layout);
  EXPECT_EQ(run_command(wanted.session, "question.set global_batch_size 128"), "");
  wanted.session.settle();
  EXPECT_FALSE(wanted.levers().known);
  EXPECT_NE(run_command(wanted.session, "levers.take 2"), "");
}

TEST(Levers, SayThatNothingFits) {
  Session session(test::plan_that_cannot_fit(), Timing::fitting);
  session.want_levers();
  session.settle();
  EXPECT_TRUE(session.state().exploring.levers.known);
  EXPECT_EQ(session.state().exploring.levers.problem, "no layout fits");
}

}  // namespace
}  // namespace shardwise::view
