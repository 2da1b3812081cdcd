// Locks, menus, typed values, why not, the way out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "answers/plan_answer.h"
#include "answers/question_of_plan.h"
#include "answers/why_not_text.h"
#include "gui/models/commands/commands.h"
#include "gui/models/explore/why_model.h"
#include "gui/models/session/session.h"
#include "gui/models/window/explain_model.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/search/advice/cheapest_fix.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

class Question : public testing::Test {
 protected:
  explicit Question(Plan plan = test::small_plan()) : session_(std::move(plan)) {
    session_.settle();
  }
  std::string run(const std::string& line) {
    std::string problem = run_command(session_, line);
    session_.settle();
    return problem;
  }
  const AppState& state() const { return session_.state(); }
  Session session_;
};

TEST_F(Question, ALockedFieldHasOneValueInAllRowsAndUndoTakesItAway) {
  const std::int64_t all = state().answer.counts.legal;
  EXPECT_EQ(run("question.lock tp 2"), "");
  EXPECT_GT(state().answer.counts.legal, 0);
  EXPECT_LT(state().answer.counts.legal, all);
  for (const LayoutRow& row : state().answer.rows) EXPECT_TRUE(row.typed || row.layout.tp == 2);
  session_.undo();
  session_.settle();
  EXPECT_EQ(state().answer.counts.legal, all);
  EXPECT_EQ(run("question.lock pp"), "");
  EXPECT_EQ(*state().exploring.limits.lock_of("pp"), "1");
  EXPECT_EQ(run("question.lock pp"), "");
  EXPECT_EQ(state().answer.counts.legal, all);
}

TEST_F(Question, ALockThatLeavesNoLayoutIsRefused) {
  EXPECT_EQ(run("question.lock tp 8"), "");
  EXPECT_EQ(run("question.lock pp 8"), "no layout has tp 8, pp 8");
  EXPECT_EQ(*state().exploring.limits.lock_of("tp"), "8");
  EXPECT_EQ(state().exploring.limits.lock_of("pp"), nullptr);
}

TEST_F(Question, AnotherModelLosesTheLocksThatLeaveItNoLayoutAndSaysSo) {
  EXPECT_EQ(run("question.lock tp 8"), "");
  EXPECT_EQ(run("question.lock recompute none"), "");
  // Of 25 heads: tp 8 divides them not.
  EXPECT_EQ(run("question.model gpt2-xl"), "");
  EXPECT_EQ(state().message, "no layout has tp 8: unlocked");
  EXPECT_EQ(state().exploring.limits.lock_of("tp"), nullptr);
  EXPECT_NE(state().exploring.limits.lock_of("recompute"), nullptr);
  EXPECT_GT(state().answer.counts.legal, 0);
  EXPECT_TRUE(state().answer.problem.empty());
}

TEST_F(Question, ALockIsNamedWhereItLeavesNothing) {
  EXPECT_EQ(run("question.lock tp 8"), "");
  EXPECT_EQ(run("question.set gpus 8"), "");
  const Plan one = test::small_plan(1);
  session_.change(one, Change::question);  // as undo() may come back to one
  session_.settle();
  EXPECT_EQ(state().answer.counts.legal, 0);
  EXPECT_EQ(state().answer.problem, "no layout has tp 8: unlock a field");
  EXPECT_EQ(run("question.lock tp"), "");
  EXPECT_GT(state().answer.counts.legal, 0);
}

TEST_F(Question, ReasonsOfPanelsAreTheirOwn) {
  EXPECT_FALSE(why_subject(state().report, "panel.mesh").formula.empty());
  EXPECT_TRUE(why_subject(state().report, "panel.mesh_of_another").formula.empty());
  EXPECT_NE(why_subject(state().report, "panel.scaling_table").formula, "");
}

TEST_F(Question, AnOpenedFieldHasMoreRows) {
  const std::int64_t all = state().answer.counts.legal;
  EXPECT_EQ(run("question.open overlap_grad_reduce"), "");
  EXPECT_GT(state().answer.counts.legal, all);
  EXPECT_EQ(run("question.open overlap_grad_reduce"), "");
  EXPECT_EQ(state().answer.counts.legal, all);
}

TEST_F(Question, RefusesLimitsThatAreNone) {
  EXPECT_THAT(run("question.lock colour"), testing::HasSubstr("colour is no field"));
  EXPECT_NE(run("question.lock tp three"), "");
  EXPECT_NE(run("question.open colour"), "");
  EXPECT_THAT(run("question.objective speed"), testing::HasSubstr("speed is none of"));
  EXPECT_TRUE(state().exploring.limits.locks.empty());
}

TEST_F(Question, AnObjectiveRanksTheRowsThatAreThere) {
  session_.worker().hold();
  EXPECT_EQ(run_command(session_, "question.objective memory"), "");
  Bytes last;
  for (const std::uint32_t row : state().shown) {
    if (state().answer.rows[row].fit != Fit::fits) break;
    EXPECT_GE(state().answer.rows[row].memory, last);
    last = state().answer.rows[row].memory;
  }
  session_.worker().release();
}

TEST_F(Question, TypedValuesMayLieBetweenTheSteps) {
  EXPECT_EQ(run("question.set sequence_length 3000"), "");
  EXPECT_EQ(state().plan.job.sequence_length, 3000);
  EXPECT_EQ(run("question.set recompute full"), "");
  EXPECT_EQ(state().plan.layout.recompute, Recompute::full);
  EXPECT_EQ(run("question.set price 2.99"), "");
  EXPECT_DOUBLE_EQ(*state().plan.cluster.price_per_gpu_hour, 2.99);
  for (const char* const wrong :
       {"tp 3", "tp -1", "tp 99999999999999", "held_back 99", "price -3", "recompute most"}) {
    EXPECT_NE(run(std::string("question.set ") + wrong), "") << wrong;
    EXPECT_TRUE(check_plan(state().plan).empty());
  }
}

TEST_F(Question, MenusAreTheCatalogueAndLeaveAPlanThatIsLegal) {
  session_.want_catalogue();
  session_.settle();
  const Catalogue& menus = state().exploring.catalogue;
  EXPECT_GT(menus.models.size(), 50U);
  EXPECT_GT(menus.clusters.size(), 20U);
  for (const Choice& engine : menus.engines) {
    const std::string problem = run("question.engine " + engine.name);
    EXPECT_TRUE(check_plan(state().plan).empty()) << engine.name << problem;
    EXPECT_EQ(state().plan.engine.name == engine.name, problem.empty()) << problem;
  }
  for (const char* const cluster : {"dgx-a100", "dgx-1-v100", "laptop"}) {
    EXPECT_EQ(run(std::string("question.cluster ") + cluster), "");
    EXPECT_EQ(state().plan.cluster.name, cluster);
    EXPECT_TRUE(check_plan(state().plan).empty()) << cluster;
  }
  EXPECT_THAT(run("question.model lama-3.1-8b"), testing::HasSubstr("llama-3.1-8b"));
}

TEST_F(Question, AnotherModelHasItsBestLayoutSelected) {
  EXPECT_EQ(run("question.model llama-3.2-1b"), "");
  EXPECT_EQ(state().plan.model.name, "llama-3.2-1b");
  EXPECT_EQ(state().plan.layout, state().answer.rows[state().answer.ranked.front()].layout);
  session_.undo();
  EXPECT_EQ(state().plan.model.name, "small");
}

TEST_F(Question, WhyNotIsWhatPlanPrints) {
  EXPECT_EQ(run("why.layout tp=4 pp=2"), "");
  const TypedWhy& why = state().exploring.why;
  EXPECT_EQ(why.asked, "tp=4,pp=2");
  const sim::PlanQuestion question = sim::question_of(state().plan, 1);
  const SearchRequest request = question.request(0);
  Candidate winner;
  winner.layout = state().winner->layout;
  winner.cost = evaluate(state().plan.model, state().plan.cluster, state().plan.job,
                         state().plan.engine, winner.layout);
  const FieldValues values = {{"tp", "4"}, {"pp", "2"}};
  const Result<WhyNot> fresh = why_not(request, winner, values);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(why.text, sim::why_not_text(*fresh, values, false));
  ASSERT_TRUE(why.other);
  const Waterfall fall = time_waterfall(*state().winner, *why.other);
  double sum = fall.winner;
  for (const WaterStep& step : fall.steps) sum += step.change;
  EXPECT_NEAR(sum, fresh->other.time.total().value(), 1e-9 * sum);
}

TEST_F(Question, WhyNotRefusesWhatIsNoLayout) {
  EXPECT_NE(run("why.layout colour=4"), "");
  EXPECT_NE(run("why.layout tp"), "");
  EXPECT_EQ(run("why.layout"), "");
  EXPECT_TRUE(state().exploring.why.asked.empty());
  EXPECT_EQ(run("why.layout tp=8 pp=8"), "");
  EXPECT_THAT(state().exploring.why.text, testing::HasSubstr("Not valid"));
  EXPECT_FALSE(state().exploring.why.other);
}

TEST_F(Question, ErrorsOfPublishedRowsAreKnownAndFollowTheQuestion) {
  ASSERT_FALSE(state().exploring.nearest.empty());
  EXPECT_TRUE(typical_errors(state().exploring.nearest).time);
  EXPECT_TRUE(typical_errors(state().exploring.nearest).memory);
  EXPECT_EQ(why_published(state().exploring.nearest).size(), state().exploring.nearest.size());
  const std::string first = state().exploring.nearest.front().id;
  run("question.model mixtral-8x7b");
  EXPECT_NE(state().exploring.nearest.front().id, first);
}

class TooLarge : public Question {
 protected:
  TooLarge() : Question(test::plan_that_cannot_fit()) {}
};

TEST_F(TooLarge, SaysTheWayOut) {
  EXPECT_EQ(state().answer.counts.fit, 0);
  EXPECT_THAT(state().exploring.way_out, testing::HasSubstr("Cheapest change: --"));
}

TEST_F(TooLarge, SaysWhichEngineWasAsked) {
  EXPECT_THAT(state().exploring.way_out,
              testing::HasSubstr("(" + state().plan.engine.name + " alone)"));
}

// No change of megatron_fsdp makes it fit, one of another engine does.
TEST(NothingFitsOneEngine, TheWayOutIsThatOfPlan) {
  Plan plan = test::plan_that_cannot_fit();
  plan.model = *load_model("llama-3.1-70b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  plan.engine = *find_engine("megatron_fsdp");
  plan.layout = {};
  plan.layout.dp_shard = 8;
  plan.job.global_batch_size = 1024;
  plan.job.sequence_length = 4096;
  Session session(plan, Timing::fitting);
  session.settle();
  EXPECT_THAT(session.state().exploring.way_out, testing::HasSubstr("--open offload_optimizer"));
}

TEST_F(TooLarge, ARowNamesItsStageItsBytesAndTheCheapestChange) {
  const std::uint32_t row = state().shown.front();
  const LayoutRow& shown = state().answer.rows[row];
  EXPECT_EQ(misfit_text(shown, state().answer.usable),
            "stage 0 is " + format_bytes(shown.needed - state().answer.usable) + " over");
  session_.want_fix(row);
  session_.settle();
  const Plan& plan = state().plan;
  const std::optional<Fix> fix = cheapest_fix(plan.model, plan.cluster, plan.job, plan.engine,
                                              shown.layout, state().answer.usable);
  EXPECT_EQ(state().exploring.fix->text,
            fix ? to_string(*fix) : "no single change of this layout and engine makes it fit");
}

}  // namespace
}  // namespace shardwise::view
