#include "executor/engine/gradient_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardwise::exec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string wrong_with(GradientChecks& checks, std::vector<float> gradients) {
  try {
    checks.check(7, 3, std::span<const float>(gradients));
    return {};
  } catch (const std::runtime_error& found) {
    return found.what();
  }
}

TEST(GradientChecks, NameTheStepAndTheBucketOfWhatIsNotANumber) {
  GradientChecks checks({true, false});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(wrong_with(checks, {1, 2}), IsEmpty());
  EXPECT_EQ(wrong_with(checks, {1, kNan}),
            "this rank's gradients of bucket 3 in step 7 contain NaN");
  EXPECT_THAT(wrong_with(checks, {kInfinity, 1}), HasSubstr("are infinite"));
  GradientChecks none{{}};
  EXPECT_THAT(wrong_with(none, {kNan}), IsEmpty());
}

TEST(GradientChecks, FindNormsOfMoreThanTenTimesTheLargestOfAHundred) {
  GradientChecks checks({false, true});
  for (int i = 0; i < 100; ++i) EXPECT_THAT(wrong_with(checks, {i == 50 ? 5.0F : 3.0F}), IsEmpty());
  EXPECT_THAT(wrong_with(checks, {30, 40}), IsEmpty());  // 50: ten times, not more
  EXPECT_THAT(wrong_with(checks, {3000, 4000}),
              HasSubstr("have norm 5000, more than 10 times the largest before, 50"));
}

}  // namespace
}  // namespace shardwise::exec
