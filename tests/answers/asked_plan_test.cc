// The question of `plan` from texts.
#include "answers/asked_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/search/advice/default_batch.h"
#include "tests/support/diagnostic_paths.h"

namespace shardwise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

AskedPlan asked_llama_plan() {
  AskedPlan asked;
  asked.job.model = "llama-3.1-8b";
  asked.job.cluster = "dgx-h100";
  return asked;
}

bool assumes(const PlanQuestion& question, const std::string& id) {
  for (const Assumption& each : question.assumptions) {
    if (each.id == id) return true;
  }
  return false;
}

TEST(AskedPlan, TakesTheEnginesOfTodayWhereNoneIsNamed) {
  const Result<PlanQuestion> question = read_question(asked_llama_plan());
  ASSERT_TRUE(question.ok()) << to_string(question.problems());
  EXPECT_EQ(question->engines, engines_of_today(question->clusters.front()));
  EXPECT_TRUE(question->takes_engine);
  EXPECT_EQ(question->breadth, Breadth::usual);
  EXPECT_EQ(question->objective, Objective::step_time);
  EXPECT_EQ(question->job.global_batch_size,
            default_batch(question->clusters.front(), question->job));
  EXPECT_TRUE(assumes(*question, "global_batch_size"));
  EXPECT_FALSE(question->executed);
}

TEST(AskedPlan, ReadsWhatIsGiven) {
  AskedPlan asked = asked_llama_plan();
  asked.job.engine = "fsdp2,megatron_ddp";
  asked.job.gpus = "8,32,64";
  asked.job.texts = {{"global_batch_size", "64"}, {"recompute_modules", "core_attn"}};
  asked.space = "full";
  asked.rank_by = "memory";
  asked.max_memory = "40";
  asked.locks = {"tp=2,pp=1", "zero_stage=1"};
  asked.opened = {"order"};
  asked.top = 3;
  asked.front = true;
  const Result<PlanQuestion> question = read_question(asked);
  ASSERT_TRUE(question.ok()) << to_string(question.problems());
  ASSERT_EQ(question->engines.size(), 2U);
  EXPECT_EQ(question->engines.front()->name, "fsdp2");
  EXPECT_FALSE(question->takes_engine);
  ASSERT_EQ(question->clusters.size(), 3U);
  EXPECT_EQ(question->clusters[1].gpus, 32);
  EXPECT_EQ(question->job.global_batch_size, 64);
  EXPECT_FALSE(assumes(*question, "global_batch_size"));
  EXPECT_EQ(question->breadth, Breadth::full);
  EXPECT_EQ(question->objective, Objective::memory);
  EXPECT_EQ(question->max_memory, 40_GiB);
  EXPECT_THAT(question->locks, ElementsAre(Pair("recompute", "selective"), Pair("tp", "2"),
                                           Pair("pp", "1"), Pair("zero_stage", "1")));
  EXPECT_THAT(question->opened, ElementsAre("order"));
  EXPECT_EQ(question->top, 3U);
  EXPECT_TRUE(question->front);
}

TEST(AskedPlan, ReportsAllProblemsAtOnce) {
  AskedPlan asked = asked_llama_plan();
  asked.job.model = "llama-9";
  asked.job.engine = "none";
  asked.space = "ful";
  asked.rank_by = "x";
  asked.max_memory = "40 cows";
  asked.locks = {"tp", "pp=2,pp=4"};
  asked.opened = {"degrees"};
  asked.why_not = "tp=two";
  const Result<PlanQuestion> question = read_question(asked);
  ASSERT_FALSE(question.ok());
  EXPECT_THAT(test::paths_of(question.problems()),
              UnorderedElementsAre("--model", "--engine", "--space", "--rank-by", "--max-memory",
                                   "--lock", "--lock", "--open", "--why-not"));
}

TEST(AskedPlan, RanksByCostOnlyWhereAPriceIsKnown) {
  AskedPlan asked = asked_llama_plan();
  asked.rank_by = "cost";
  EXPECT_TRUE(read_question(asked).ok());
  asked.job.cluster = "laptop";
  const Result<PlanQuestion> question = read_question(asked);
  ASSERT_FALSE(question.ok());
  EXPECT_EQ(question.problems().front().message, "laptop has no price");
}

// On CPUs our executor trains: what it does not run is not searched, unless opened.
TEST(AskedPlan, SearchesWhatRunsOnCpus) {
  AskedPlan asked = asked_llama_plan();
  asked.job.model = "gpt2";
  asked.job.cluster = "laptop";
  const Result<PlanQuestion> question = read_question(asked);
  ASSERT_TRUE(question.ok()) << to_string(question.problems());
  EXPECT_TRUE(question->executed);
  EXPECT_FALSE(question->takes_engine);
  EXPECT_TRUE(assumes(*question, "layouts.executed"));
  const auto held = [](const PlanQuestion& of) {
    return std::ranges::find(of.assumptions, "layouts.executed", &Assumption::id)->text;
  };
  EXPECT_THAT(
      held(*question),
      HasSubstr("recompute_interval 1, schedule one_f_one_b or gpipe or looped_bfs (--open"));
  asked.job.engine = "fsdp2";
  EXPECT_THAT(held(*read_question(asked)),
              HasSubstr("recompute_interval 1, tp 1, pp 1, vpp 1 (--open"));
  const Diagnostics problems = {{"command line", 0, 0, "--tp", "none", "use 1"}};
  EXPECT_THAT(with_executed_hint(*question, problems).front().hint, HasSubstr("--open FIELD"));
  EXPECT_EQ(with_executed_hint(*read_question(asked_llama_plan()), problems).front().hint, "use 1");
}

}  // namespace
}  // namespace shardwise::sim
