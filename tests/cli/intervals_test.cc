// Every screen and JSON text that has a predicted step or memory has its 90 % interval.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

const std::vector<std::string> kSmall = {
    "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--gpus", "8", "--engine", "fsdp2"};
constexpr const char* kLine =
    "\n90 %: step [0-9.]+ (ms |s )?to [0-9.]+ (ms|s); allocated [0-9.]+ (GiB )?to [0-9.]+,";

Outcome asked(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return shardwise(words);
}

TEST(Intervals, AreOnEveryFirstScreen) {
  for (const char* verb : {"estimate", "plan", "simulate"}) {
    EXPECT_THAT(asked({verb}, kSmall).out, ContainsRegex(kLine)) << verb;
  }
  EXPECT_THAT(shardwise({"fits", "--model", "llama-3.1-8b", "--gpu", "h100", "--gpus", "8"}).out,
              ContainsRegex(kLine));
}

TEST(Intervals, SayWhatTheyWereCalibratedOn) {
  EXPECT_THAT(asked({"estimate", "--long"}, kSmall).out,
              ContainsRegex("intervals: off the step as [0-9,]+ rows of [0-9]+ sources"));
}

void expect_around(const Json& interval, const char* unit, double predicted) {
  EXPECT_LE(interval.at(std::string("low_") + unit), predicted);
  EXPECT_GE(interval.at(std::string("high_") + unit), predicted);
  EXPECT_GE(interval.at("sources"), 4);
}

TEST(Intervals, AreInJsonWithTheirEnds) {
  for (const char* verb : {"estimate", "simulate"}) {
    SCOPED_TRACE(verb);
    const Json report = Json::parse(asked({verb, "--json"}, kSmall).out);
    const Json& intervals = report.at("intervals");
    EXPECT_EQ(intervals.at("level"), 0.9);
    expect_around(intervals.at("step_time"), "s", report.at("step_time_s"));
    const Json& verdict = report.at("verdict");
    for (const char* key : {"allocated", "reserved", "nvidia_smi"}) {
      expect_around(intervals.at(key), "bytes", verdict.at(std::string(key) + "_bytes"));
    }
  }
}

TEST(Intervals, AreOfEveryRowOfAPlan) {
  const Json answer = Json::parse(asked({"plan", "--json"}, kSmall).out);
  for (const Json& row : answer.at("best")) {
    const double step = row.at("simulated_step_time_s");
    EXPECT_LE(row.at("step_time_low_s"), step);
    EXPECT_GE(row.at("step_time_high_s"), step);
    EXPECT_LE(row.at("memory_low_bytes"), row.at("memory_bytes"));
    EXPECT_GE(row.at("memory_high_bytes"), row.at("memory_bytes"));
  }
}

TEST(Intervals, CalibrateOnTheRowsOfTheRepository) {
  const Outcome text = shardwise({"score", "examples/public.jsonl", "--intervals"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("mean of [0-9]+ sources +step "));
  const Json table =
      Json::parse(shardwise({"score", "examples/public.jsonl", "--intervals", "--json"}).out);
  EXPECT_EQ(table.at("schema"), "shardwise.intervals/1");
  EXPECT_FALSE(table.at("cells").empty());
}

// A page goes to a reader who has nothing else.
TEST(Score, WritesAnAccuracyPage) {
  const Outcome made = shardwise({"score", "examples/public.jsonl", "-o", "-"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(made.out, Not(HasSubstr("<script")));
  EXPECT_THAT(made.out, HasSubstr("By release"));
}

}  // namespace
}  // namespace shardwise::cli
