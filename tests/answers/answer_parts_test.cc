// What tables, pictures and sentences take from an answer.
#include "answers/answer_parts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "answers/asked_plan.h"
#include "answers/plan_words.h"
#include "planner/engines/engines.h"
#include "planner/question/layout_words.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

AskedPlan llama(const std::string& model, const std::string& gpus) {
  AskedPlan asked;
  asked.job.model = model;
  asked.job.cluster = "dgx-h100";
  asked.job.gpus = gpus;
  asked.job.texts = {{"global_batch_size", "64"}};
  asked.threads = 2;
  return asked;
}

PlanRow row_of(const EngineProfile& engine, double seconds) {
  PlanRow row;
  row.engine = engine.name;
  row.candidate.cost.step_time = Seconds(seconds);
  return row;
}

TEST(AnswerParts, AddTheCountsOfEngines) {
  static const LayoutRule kFirst = {.id = "first", .text = "one"};
  static const LayoutRule kSecond = {.id = "second", .text = "two"};
  PlanAnswer answer;
  answer.engines.resize(2);
  answer.engines[0].counts = {{.enumerated = 10, .legal = 4, .pruned = {{&kFirst, 6}}}, 1, 2, 0, 1};
  answer.engines[1].counts = {
      {.enumerated = 20, .legal = 5, .pruned = {{&kSecond, 12}, {&kFirst, 3}}}, 2, 0, 1, 2};
  const SearchCounts all = counts_of_all(answer);
  EXPECT_EQ(all.space.enumerated, 30);
  EXPECT_EQ(all.space.legal, 9);
  EXPECT_EQ(all.does_not_fit, 3);
  EXPECT_EQ(all.at_risk, 2);
  EXPECT_EQ(all.too_slow, 1);
  EXPECT_EQ(all.ranked, 3);
  ASSERT_EQ(all.space.pruned.size(), 2U);
  EXPECT_EQ(all.space.pruned[0].layouts, 9);
  EXPECT_EQ(all.space.pruned[1].layouts, 12);
  EXPECT_EQ(counts_words(all),
            "30 combinations, 9 valid: 3 too large, 2 at risk, 1 too slow, 3 ranked");
}

TEST(AnswerParts, OrderTheOtherEnginesByTheirBest) {
  PlanAnswer answer;
  const std::vector<const EngineProfile*> engines = {find_engine("megatron_ddp"),
                                                     find_engine("fsdp2"), find_engine("deepspeed"),
                                                     find_engine("megatron_fsdp")};
  for (const EngineProfile* each : engines) answer.engines.push_back({each, {}, {}, {}});
  answer.engines[0].best = row_of(*engines[0], 3);
  answer.engines[2].best = row_of(*engines[2], 2);
  answer.engines[3].best = row_of(*engines[3], 1);
  answer.best = {*answer.engines[3].best};
  const std::vector<const EngineAnswer*> others = other_engines(answer);
  ASSERT_EQ(others.size(), 3U);
  EXPECT_EQ(others[0]->engine, engines[2]);
  EXPECT_EQ(others[1]->engine, engines[0]);
  EXPECT_EQ(others[2]->engine, engines[1]);
}

TEST(AnswerParts, ThinRowsWithBothEnds) {
  std::vector<PlanRow> rows(11);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].mfu = static_cast<double>(i);
  const std::vector<PlanRow> some = thinned(rows, 3);
  ASSERT_EQ(some.size(), 3U);
  EXPECT_EQ(some[0].mfu, 0);
  EXPECT_EQ(some[1].mfu, 5);
  EXPECT_EQ(some[2].mfu, 10);
  EXPECT_EQ(thinned(rows, 11).size(), 11U);
  EXPECT_EQ(thinned(rows, 1).size(), 11U);
}

TEST(AnswerParts, GiveTimesThatSumToTheDifferenceOfSteps) {
  StepReport first;
  first.time.forward = Seconds(1);
  first.time.bubble = Seconds(2);
  StepReport second = first;
  second.time.bubble = Seconds(0.5);
  second.time.dp_exposed = Seconds(3);
  second.time.optimizer = Seconds(1);
  const std::vector<TimeDifference> found = time_differences(first, second);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].part->field, &TimeParts::dp_exposed);
  EXPECT_EQ(found[2].part->field, &TimeParts::bubble);
  EXPECT_EQ(found[2].more(), Seconds(-1.5));
  Seconds sum;
  for (const TimeDifference& each : found) sum += each.more();
  EXPECT_EQ(sum, second.time.total() - first.time.total());
}

// 70 B parameters with fp32 states need 1.1 TB; eight GPUs have 640 GB.
TEST(PlanWords, SayHowFarFromFittingAndWhatHelps) {
  const PlanQuestion question = *read_question(llama("llama-3.1-70b", "8"));
  const PlanAnswer found = *answer(question);
  ASSERT_TRUE(found.best.empty());
  // The same bytes as its row and as `estimate` of it.
  const Bytes takes = found.nothing.nearest.front().candidate.cost.needed;
  EXPECT_EQ(nothing_fits_words(found),
            fmt::format("Nothing fits: the smallest layout takes {} of {}, {} too much",
                        format_bytes(takes), format_bytes(found.usable),
                        format_bytes(takes - found.usable)));
  const NothingFits& nothing = found.nothing;
  ASSERT_TRUE(nothing.way_out.has_value());
  EXPECT_LE(nothing.way_out->relief.best.cost.upper, found.usable);
  EXPECT_THAT(way_out_words(nothing), StartsWith(nothing.way_out->relief.text + ": "));
  ASSERT_NE(nothing.way_out->engine, nullptr);
  EXPECT_THAT(way_out_words(nothing), HasSubstr(", engine " + nothing.way_out->engine->name));
  ASSERT_TRUE(nothing.more_gpus.has_value());
  EXPECT_THAT(way_out_words(nothing), HasSubstr("; or the fewest GPUs, --gpus "));
  EXPECT_THAT(way_out_words({{}, false, {}, nothing.more_gpus}), StartsWith("--gpus "));
  EXPECT_EQ(way_out_words({}), "no single change makes it fit, nor more GPUs");
}

// Eight 4090 are all that the cluster has, and 405 B parameters take 6.5 TB in training.
TEST(PlanWords, NameAnotherClusterWhereThisOneCannotHaveEnough) {
  AskedPlan asked = llama("llama-3.1-405b", "8");
  asked.job.cluster = "rtx-4090-x8";
  asked.job.engine = "fsdp2";
  const PlanAnswer found = *answer(*read_question(asked));
  ASSERT_TRUE(found.nothing.more_gpus.has_value());
  const std::string words = way_out_words(found.nothing);
  EXPECT_THAT(words, HasSubstr("--cluster dgx-h100 --gpus "));
  EXPECT_GE(found.nothing.more_gpus->relief.gpus, 6'500 / 80);
}

TEST(PlanWords, SayWhatWasAskedAndByWhatRowsRank) {
  AskedPlan asked = llama("llama-3.1-8b", "8");
  asked.job.engine = "fsdp2";
  const PlanQuestion question = *read_question(asked);
  EXPECT_EQ(question_words(question, question.clusters.front(), {"fsdp2"}),
            "llama-3.1-8b, 8.03 B parameters, 8 GPUs of dgx-h100, fsdp2, batch 64 x 4,096 tokens");
  const PlanAnswer found = *answer(question);
  ASSERT_FALSE(found.best.empty());
  EXPECT_THAT(ranking_words(found, found.best),
              StartsWith("step: simulated time; model: closed-form estimate"));
  PlanAnswer unsimulated = found;
  unsimulated.best = {found.best.front()};
  unsimulated.best.front().simulated.reset();
  unsimulated.best.front().tied = false;
  unsimulated.best.front().candidate.layout.dp_replicate = 2;
  unsimulated.unsimulated = "long";
  EXPECT_EQ(ranking_words(unsimulated, unsimulated.best),
            "step: closed-form estimate (long); dp: shard x replicate");
}

TEST(PlanWords, SayWhyNot) {
  const FieldValues values = {{"tp", "4"}, {"pp", "2"}};
  WhyNot why;
  why.answer = WhyNot::Answer::slower;
  why.ranked = 12;
  why.winner.step_time = Seconds(2);
  why.other.step_time = Seconds(2.5);
  EXPECT_EQ(why_not_words(why, values),
            "With tp 4, pp 2 the best of 12 layouts that fit is 500 ms (25.0 %) slower");
  why.answer = WhyNot::Answer::best;
  EXPECT_EQ(why_not_words(why, values), "The best layout has these values");
}

}  // namespace
}  // namespace shardwise::sim
