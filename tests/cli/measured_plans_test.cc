// What `measure` says of the plans it trained.
#include "cli/verbs/measured_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

/// Plans of these predicted and measured milliseconds; 0 was refused.
std::vector<MeasuredPlan> plans_of(const std::vector<std::pair<double, double>>& steps) {
  std::vector<MeasuredPlan> plans;
  std::int32_t pp = 0;
  for (const auto& [predicted, measured] : steps) {
    MeasuredPlan& plan = plans.emplace_back();
    plan.row.candidate.layout.pp = ++pp;
    plan.predicted.step_time = Seconds(predicted * 1e-3);
    plan.predicted.verdict.point = 2_GiB;
    if (measured > 0) {
      plan.measured.emplace();
      plan.measured->step_time = Seconds(measured * 1e-3);
      plan.measured->verdict.point = 1_GiB;
    } else {
      plan.refused = "no room";
    }
  }
  return plans;
}

TEST(MeasuredPlans, HaveTheMedianOfTheirErrors) {
  EXPECT_FALSE(median_error(plans_of({{1, 0}})).has_value());
  EXPECT_NEAR(*median_error(plans_of({{90, 100}, {130, 100}, {100, 100}})), 0.1, 1e-12);
  EXPECT_NEAR(*median_error(plans_of({{90, 100}, {130, 100}})), 0.2, 1e-12);
}

// scipy.stats.kendalltau([1, 2, 3, 4], [1, 3, 2, 4]) is 0.667 and of ([1, 2, 3], [3, 2, 1]) -1.
TEST(MeasuredPlans, HaveKendallsTauOfTheirOrder) {
  EXPECT_FALSE(kendall_tau(plans_of({{1, 1}, {2, 2}})).has_value());
  EXPECT_NEAR(*kendall_tau(plans_of({{1, 1}, {2, 3}, {3, 2}, {4, 4}})), 2.0 / 3, 1e-12);
  EXPECT_NEAR(*kendall_tau(plans_of({{1, 3}, {2, 2}, {3, 1}})), -1, 1e-12);
  EXPECT_NEAR(*kendall_tau(plans_of({{1, 1}, {2, 0}, {3, 2}, {4, 3}})), 1, 1e-12);
}

TEST(MeasuredPlans, AreATableWithWhatWasRefused) {
  const std::string text = measured_text(plans_of({{90, 100}, {130, 0}, {110, 100}}), false);
  EXPECT_THAT(text, HasSubstr("-10.0 %"));
  EXPECT_THAT(text, HasSubstr("2 did not run: no room\n"));
  EXPECT_THAT(text, HasSubstr("median error of the step 10.0 %\n"));
}

TEST(MeasuredPlans, AreJson) {
  const auto json = nlohmann::json::parse(measured_json(plans_of({{90, 100}, {130, 0}}), 7));
  EXPECT_EQ(json["schema"], "shardwise.measured_plans/1");
  EXPECT_EQ(json["steps"], 7);
  EXPECT_DOUBLE_EQ(json["plans"][0]["measured_step_time_s"].get<double>(), 0.1);
  EXPECT_EQ(json["plans"][0]["measured_memory_bytes"], 1 << 30);
  EXPECT_EQ(json["plans"][0]["layout"]["pp"], 1);
  EXPECT_TRUE(json["plans"][1]["measured_step_time_s"].is_null());
  EXPECT_EQ(json["plans"][1]["refused"], "no room");
  EXPECT_TRUE(json["kendall_tau"].is_null());
}

}  // namespace
}  // namespace shardwise::cli
