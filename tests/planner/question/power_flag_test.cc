#include "planner/question/power_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/question/answer_estimate.h"
#include "planner/question/command_of_plan.h"

namespace shardwise {
namespace {

AskedEstimate limited(const char* watts) {
  AskedEstimate a;
  a.job.model = "llama-3.1-8b";
  a.job.engine = "fsdp2";
  a.job.cluster = "dgx-h100";
  a.job.gpus = "8";
  a.job.texts = {{"global_batch_size", "16"}, {kPowerField, watts}};
  a.layout.texts = {{"zero_stage", "3"}, {"recompute", "full"}};
  return a;
}

EstimateAnswer answer_under(const AskedEstimate& a) {
  Result<EstimateAnswer> answer = answer_estimate(a);
  EXPECT_TRUE(answer.ok()) << to_string(answer.problems());
  return *std::move(answer);
}

TEST(PowerFlag, SlowsTheStepAndSaysSo) {
  const EstimateAnswer full = answer_under(limited(""));
  const EstimateAnswer slower = answer_under(limited("500"));
  EXPECT_GT(slower.report.step_time, full.report.step_time);
  EXPECT_EQ(slower.report.verdict.needed, full.report.verdict.needed);
  EXPECT_THAT(slower.said, testing::Contains(testing::Field(
                               &Assumption::text,
                               "matrix products of long runs at 71 % of their speed at 700 W, as "
                               "is the limit of 500 W")));
}

TEST(PowerFlag, RefusesWhatTheGpuIsNotRatedFor) {
  const auto problem = [](const char* watts) {
    const Result<EstimateAnswer> answer = answer_estimate(limited(watts));
    EXPECT_FALSE(answer.ok());
    return answer.ok() ? "" : to_string(answer.problems());
  };
  EXPECT_THAT(problem("800"), testing::HasSubstr("--power-limit: 800 W is more than h100-sxm may "
                                                 "draw"));
  EXPECT_THAT(problem("none"), testing::HasSubstr("--power-limit"));
  EXPECT_THAT(problem("0"), testing::HasSubstr("--power-limit"));
}

TEST(PowerFlag, IsInTheCommandOfAPlan) {
  const EstimateAnswer answer = answer_under(limited("500"));
  Plan plan;
  plan.model = answer.subject.model;
  plan.cluster = answer.subject.cluster;
  plan.job = answer.subject.job;
  plan.engine = answer.subject.engine;
  plan.layout = answer.report.layout;
  const Result<AskedEstimate> again = asked_of(plan);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  EXPECT_THAT(command_of(*again), testing::HasSubstr("--power-limit 500"));
}

}  // namespace
}  // namespace shardwise
