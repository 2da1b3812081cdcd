#include "executor/engine/gradient_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace shardwise::exec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string wrong_with(GradientCheckState& state, const GradientCheckRules& rules, double norm) {
  check_gradients(rules, norm, {3, 0}, state);
  return state.bucket < 0 ? "" : what_is_wrong(state, 7);
}

TEST(GradientChecks, NameTheStepAndTheBucketOfWhatIsNotANumber) {
  const GradientCheckRules rules = {true, false};
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GradientCheckState state;
  EXPECT_THAT(wrong_with(state, rules, 1), IsEmpty());
  EXPECT_EQ(wrong_with(state, rules, kNan),
            "this rank's gradients of bucket 3 in step 7 contain NaN");
  state = {};
  EXPECT_THAT(wrong_with(state, rules, kInfinity), HasSubstr("are infinite"));
  state = {};
  EXPECT_THAT(wrong_with(state, {}, kNan), IsEmpty());
}

TEST(GradientChecks, FindNormsOfMoreThanTenTimesTheLargestOfAHundred) {
  const GradientCheckRules rules = {false, true};
  GradientCheckState state;
  for (int i = 0; i < 100; ++i) EXPECT_THAT(wrong_with(state, rules, i == 50 ? 5 : 3), IsEmpty());
  EXPECT_THAT(wrong_with(state, rules, 50), IsEmpty());  // ten times, not more
  EXPECT_THAT(wrong_with(state, rules, 5000),
              HasSubstr("have norm 5000, more than 10 times the largest before, 50"));
}

TEST(GradientChecks, KeepTheFirstThatIsWrong) {
  const GradientCheckRules rules = {true, true};
  GradientCheckState state;
  check_gradients(rules, std::numeric_limits<double>::infinity(), {4, 12}, state);
  EXPECT_THAT(wrong_with(state, rules, std::numeric_limits<double>::quiet_NaN()),
              HasSubstr("bucket 4 in step 7 are infinite"));
  EXPECT_EQ(state.operation, 12);
}

}  // namespace
}  // namespace shardwise::exec
