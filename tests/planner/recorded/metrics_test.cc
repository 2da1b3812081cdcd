#include "planner/recorded/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace shardwise {
namespace {

constexpr const char* kHead = "{\"schema\":\"shardwise.metrics/1\"}\n";

std::string line(int step, double seconds, const std::string& loss = "2.5") {
  return "{\"step\":" + std::to_string(step) + ",\"loss\":" + loss +
         ",\"gradient_norm\":1,\"learning_rate\":0.001,\"step_time_s\":" + std::to_string(seconds) +
         ",\"tokens_per_s\":1000,\"held_by_checkpoint_s\":0}\n";
}

TEST(MetricsReader, ReadsTheSameWhereverTheTextIsCut) {
  const std::string text = kHead + line(0, 3) + line(1, 2, "nan") + line(2, 1.5);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    MetricsReader reader("m.jsonl");
    EXPECT_TRUE(reader.add(text.substr(0, cut)).empty());
    EXPECT_EQ(reader.waits(), cut > 0 && text[cut - 1] != '\n');
    EXPECT_TRUE(reader.add(text.substr(cut)).empty());
    ASSERT_EQ(reader.steps().size(), 3U);
    EXPECT_EQ(reader.steps()[0].time, Seconds(3));
    EXPECT_TRUE(std::isnan(reader.steps()[1].loss));
    EXPECT_EQ(reader.steps()[2].step, 2);
    EXPECT_FALSE(reader.waits());
  }
}

TEST(MetricsReader, SaysWhichLineIsWrong) {
  const auto said = [](const std::string& text) {
    MetricsReader reader("m.jsonl");
    const Diagnostics problems = reader.add(text);
    return problems.empty() ? std::string() : to_string(problems.front());
  };
  EXPECT_THAT(said("{\"schema\":\"shardwise.metrics/2\"}\n"), testing::HasSubstr("m.jsonl:1"));
  EXPECT_THAT(said(kHead + line(0, 1) + "{\"step\":\n"), testing::HasSubstr("m.jsonl:3"));
  EXPECT_THAT(said(kHead + line(0, -1)), testing::HasSubstr("m.jsonl:2:"));
  EXPECT_THAT(said(kHead + line(0, -1)), testing::HasSubstr("/step_time_s"));
  EXPECT_THAT(said(kHead + std::string(100'000, 'x')), testing::HasSubstr("a line of over"));
}

TEST(MetricsReader, TakesStepsThatAResumedRunSaysAgain) {
  MetricsReader reader("m.jsonl");
  EXPECT_TRUE(reader.add(kHead + line(0, 1) + line(1, 1) + line(2, 1) + line(1, 5)).empty());
  ASSERT_EQ(reader.steps().size(), 2U);
  EXPECT_EQ(reader.steps()[1].time, Seconds(5));
}

}  // namespace
}  // namespace shardwise
