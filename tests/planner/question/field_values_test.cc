#include "planner/question/field_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(FieldValues, ArePairsOrProblems) {
  EXPECT_THAT(*read_values("tp=4,pp=2", "--lock"), ElementsAre(Pair("tp", "4"), Pair("pp", "2")));
  const Result<FieldValues> wrong = read_values("tp=4,,rows=2,pp=x", "--lock");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.problems().size(), 3U);
  for (const Diagnostic& each : wrong.problems()) EXPECT_EQ(each.path, "--lock");
}

TEST(SplitAt, KeepsEmptyParts) {
  EXPECT_THAT(split_at("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_at("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace shardwise
