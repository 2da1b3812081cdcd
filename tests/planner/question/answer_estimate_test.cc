// The estimate of a question in texts.
#include "planner/question/answer_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "planner/search/advice/cheapest_fix.h"
#include "planner/spec/report/report_json.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

AskedEstimate llama_on_a_node() {
  AskedEstimate asked;
  asked.job.model = "llama-3.1-8b";
  asked.job.cluster = "dgx-h100";
  asked.layout.texts = {{"tp", "2"}};
  return asked;
}

std::vector<std::string> ids(const std::vector<Assumption>& assumptions) {
  std::vector<std::string> found;
  for (const Assumption& each : assumptions) found.push_back(each.id);
  return found;
}

TEST(AnswerEstimate, IsTheEstimateOfWhatWasRead) {
  const Result<EstimateAnswer> answer = answer_estimate(llama_on_a_node());
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  const Subject& s = answer->subject;
  EXPECT_EQ(answer->layout.dp_shard, 4);
  const Evaluation alone = evaluate(s.model, s.cluster, s.job, s.engine, answer->layout);
  EXPECT_EQ(answer->report.step_time, alone.step_time);
  EXPECT_EQ(answer->report.verdict.point, alone.point);
  EXPECT_TRUE(answer->report.verdict.cheapest_fix.empty());
  EXPECT_THAT(ids(answer->said), Contains("global_batch_size"));
  EXPECT_THAT(ids(answer->said), Not(Contains("no_effect")));
  for (const Assumption& each : answer->said) {
    EXPECT_THAT(ids(answer->report.assumptions), Contains(each.id));
  }
}

TEST(AnswerEstimate, NamesTheCheapestFixWhereItDoesNotFit) {
  AskedEstimate asked = llama_on_a_node();
  asked.job.model = "llama-3.1-70b";
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  const Subject& s = answer->subject;
  ASSERT_EQ(answer->report.verdict.fit, Fit::does_not_fit);
  const std::optional<Fix> fix = cheapest_fix(s.model, s.cluster, s.job, s.engine, answer->layout,
                                              answer->report.verdict.usable);
  const std::string& change = answer->report.verdict.cheapest_fix;
  if (fix) {
    EXPECT_EQ(change, to_string(*fix));
  } else {
    EXPECT_THAT(change, testing::StartsWith("--"));
  }
}

// Weights and gradients of 7.2 B parameters in fp32 are 54 GiB, AdamW's moments as much.
TEST(AnswerEstimate, NamesAPagedOptimizerBeforeMoreGpus) {
  AskedEstimate asked = llama_on_a_node();
  asked.job.model = "mistral-7b-v0.1";
  asked.job.engine = "fsdp1";
  asked.job.cluster = "dgx-a100";
  asked.job.gpus = "1";
  asked.job.texts["global_batch_size"] = "1";
  asked.layout.texts = {{"zero_stage", "0"}, {"recompute", "full"}};
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  ASSERT_EQ(answer->report.verdict.fit, Fit::does_not_fit);
  EXPECT_THAT(answer->report.verdict.cheapest_fix, testing::StartsWith("--adamw paged"));
  asked.job.texts["adamw"] = "paged";
  const Result<EstimateAnswer> paged = answer_estimate(asked);
  ASSERT_TRUE(paged.ok()) << to_string(paged.problems());
  EXPECT_EQ(paged->report.verdict.fit, Fit::fits);
}

// 405 B parameters in 16 bytes are 6.5 TB: no layout of a node has room.
TEST(AnswerEstimate, NamesTheFewestGpusWhereNoChangeOfTheLayoutIsEnough) {
  AskedEstimate asked = llama_on_a_node();
  asked.job.model = "llama-3.1-405b";
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  const std::string& change = answer->report.verdict.cheapest_fix;
  ASSERT_THAT(change, testing::StartsWith("--gpus "));
  // What it names fits.
  AskedEstimate changed = asked;
  changed.job.gpus = change.substr(7, change.find_first_of(",:") - 7);
  std::istringstream flags(change.substr(0, change.find(':')));
  for (std::string flag; flags >> flag;) {
    const std::size_t equals = flag.find('=');
    if (!flag.starts_with("--") || equals == std::string::npos) continue;
    std::string key = flag.substr(2, equals - 2);
    std::ranges::replace(key, '-', '_');
    changed.layout.texts[key] = flag.substr(equals + 1);
  }
  const Result<EstimateAnswer> grown = answer_estimate(changed);
  ASSERT_TRUE(grown.ok()) << change << "\n" << to_string(grown.problems());
  EXPECT_EQ(grown->report.verdict.fit, Fit::fits) << change;
}

TEST(AnswerEstimate, SaysWhatHasNoEffect) {
  AskedEstimate asked = llama_on_a_node();
  asked.layout.texts["recompute_interval"] = "2";
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  EXPECT_EQ(answer->said.back().text, "no effect here: --recompute-interval 2");
}

// A run that took half as long again as predicted: so does the estimate.
TEST(AnswerEstimate, CarriesTheErrorOfARunOver) {
  const test::Scratch scratch;
  AskedEstimate asked = llama_on_a_node();
  const Seconds predicted = answer_estimate(asked)->report.step_time;
  StepReport measured = answer_estimate(asked)->report;
  measured.origin = "measured";
  measured.step_time = 1.5 * predicted;
  measured.time.bubble += 0.5 * predicted;
  measured.timeline.emplace().stages.emplace_back();
  asked.anchor = scratch.write_bytes("run.json", report_json(measured));
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  EXPECT_NEAR(answer->report.step_time / predicted, 1.5, 1e-6);

  measured.origin = "predicted";
  asked.anchor = scratch.write_bytes("prediction.json", report_json(measured));
  const Result<EstimateAnswer> refused = answer_estimate(asked);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.problems().front().path, "/origin");
  EXPECT_THAT(refused.problems().front().message, HasSubstr("is a prediction"));
}

// karpathy/nanoGPT, README of 29 December 2022: GPT-2 124M on an A100, 12 sequences of 1,024
// tokens, about 250 ms. Its model.py then had GELU and attention operator by operator, under
// autocast.
TEST(AnswerEstimate, OfEagerGpt2IsNearWhatNanoGptMeasured) {
  AskedEstimate asked;
  asked.job.model = "gpt2";
  asked.job.cluster = "dgx-a100";
  asked.job.gpus = "1";
  asked.job.engine = "pytorch_ddp";
  asked.job.texts = {{"global_batch_size", "12"},   {"sequence_length", "1024"},
                     {"attention", "materialised"}, {"loss", "materialised"},
                     {"kernels", "eager"},          {"adamw", "foreach"}};
  asked.layout.texts = {{"zero_stage", "0"}, {"micro_batch_size", "12"}};
  const Result<EstimateAnswer> answer = answer_estimate(asked);
  ASSERT_TRUE(answer.ok()) << to_string(answer.problems());
  EXPECT_NEAR(answer->report.step_time.value(), 0.250, 0.2 * 0.250);
}

}  // namespace
}  // namespace shardwise
