// `shardwise measure`, which trains what the search returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using testing::HasSubstr;
using testing::IsEmpty;

Outcome measure(std::vector<std::string> more) {
  more.insert(more.begin(), {"measure", "--model", "gpt2-tiny", "--cluster", "laptop", "--gpus",
                             "4", "--sequence-length", "16", "--global-batch-size", "8",
                             "--precision", "fp32", "--data", kTrainingText});
  return run_program(built("shardwise"), more);
}

// The ten best of a question run, each in the bytes that were predicted.
TEST(Measure, TrainsTheTenBestPlansOfAQuestion) {
  const Outcome done = measure({"--steps", "2", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  ASSERT_EQ(json["plans"].size(), 10U);
  bool pipelines = false;
  double before = 0;
  for (const auto& plan : json["plans"]) {
    EXPECT_EQ(plan["refused"], "");
    EXPECT_GT(plan["measured_step_time_s"].get<double>(), 0);
    EXPECT_EQ(plan["measured_memory_bytes"], plan["predicted_memory_bytes"]) << plan["layout"];
    EXPECT_GE(plan["predicted_step_time_s"].get<double>(), before);
    before = plan["predicted_step_time_s"].get<double>();
    pipelines = pipelines || plan["layout"]["pp"].get<int>() > 1;
  }
  EXPECT_TRUE(pipelines);
  EXPECT_TRUE(json["kendall_tau"].is_number());
}

TEST(Measure, KeepsPlansAndReportsWhereItIsAsked) {
  const Scratch scratch;
  const Outcome done = measure({"--top", "2", "--steps", "2", "-o", scratch.path("kept")});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("median error of the step"));
  for (const char* name : {"plan1", "predicted1", "measured1", "plan2", "measured2"}) {
    EXPECT_TRUE(std::filesystem::exists(scratch.path("kept/") + name + ".json")) << name;
  }
}

TEST(Measure, SaysWhyAPlanDidNotRun) {
  const Outcome done =
      measure({"--top", "1", "--lock", "pp=2", "--lock", "schedule=zb_h1", "--steps", "2"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 did not run: "));
  EXPECT_THAT(done.out, HasSubstr("/layout/schedule: zb_h1 cannot be executed"));
}

TEST(Measure, RefusesWhatPlanRefuses) {
  const Outcome refused = measure({"--lock", "pp=7"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, IsEmpty());
}

}  // namespace
}  // namespace shardwise::exec::test
