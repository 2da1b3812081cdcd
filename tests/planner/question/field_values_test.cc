#include "planner/question/field_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/text/split.h"

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

// Megatron's own class has a bucket for each tensor then: megatron_ddp.py, "buckets of 0".
TEST(TypedValue, TakesABucketOfNoElementsAsOneForEachTensor) {
  EXPECT_EQ(typed_value("ddp_bucket_size", "0"), "1");
  EXPECT_EQ(typed_value("ddp_bucket_size", "00"), "00");
  EXPECT_EQ(typed_value("vpp", "0"), "0");
  EXPECT_THAT(*read_values("ddp_bucket_size=0", "--lock"),
              ElementsAre(Pair("ddp_bucket_size", "1")));
}

TEST(SplitAt, KeepsEmptyParts) {
  EXPECT_THAT(split_at("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_at("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace shardwise
