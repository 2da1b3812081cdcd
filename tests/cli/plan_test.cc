#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/spec/plan.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Outcome plan(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"plan", "--cluster", "dgx-h100", "--threads", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return shardwise(arguments);
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::size_t width = 0;
  for (const char c : text) {
    if (c == '\n') {
      widest = std::max(widest, width);
      width = 0;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++width;
    }
  }
  return widest;
}

TEST(Plan, RanksLayoutsAndShowsTheBest) {
  const Outcome outcome = plan({"--model", "llama-3.1-70b", "--gpus", "64"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, HasSubstr("llama-3.1-70b on 64 GPUs of dgx-h100"));
  EXPECT_THAT(outcome.out, HasSubstr("layouts enumerated"));
  EXPECT_THAT(outcome.out, HasSubstr("optimizer moments"));
  EXPECT_THAT(outcome.out, HasSubstr("assumed: batch of 1024 sequences"));
  EXPECT_LE(widest_line(outcome.out), 100U);
}

TEST(Plan, FitsAHundredAndTenColumnsWhenEveryColumnVaries) {
  const Outcome outcome =
      plan({"--model", "mixtral-8x7b", "--gpus", "32", "--engine", "all", "--pareto", "--explain"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Pareto front"));
  EXPECT_THAT(outcome.out, HasSubstr("because it breaks"));
  EXPECT_LE(widest_line(outcome.out.substr(0, outcome.out.find("\nFits"))), 110U);
}

TEST(Plan, WritesAPlanThatReadsBack) {
  const std::string path = testing::TempDir() + "shardwise_plan_test.json";
  const Outcome outcome = plan({"--model", "llama-3.1-8b", "-o", path});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("wrote " + path));
  const Result<Plan> plan = read_plan(path);
  ASSERT_TRUE(plan.ok()) << to_string(plan.problems());
  EXPECT_EQ(plan->layout.world(), 8);
  EXPECT_EQ(plan->model.name, "llama-3.1-8b");
  EXPECT_GT(plan->job.global_batch_size, 0);
  std::filesystem::remove(path);
}

TEST(Plan, SaysWhenTheFileCannotBeWritten) {
  const Outcome outcome = plan({"--model", "gpt2", "-o", "/nowhere/plan.json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "shardwise: /nowhere/plan.json: cannot be written\n");
}

TEST(Plan, JsonHasTheSameFacts) {
  const Outcome outcome = plan({"--model", "gpt2-xl", "--json", "--top", "3"});
  EXPECT_EQ(outcome.exit_code, 0);
  const nlohmann::json answer = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(answer.at("schema"), "shardwise.search/1");
  ASSERT_EQ(answer.at("best").size(), 3U);
  EXPECT_LE(answer["best"][0].at("step_time_s"), answer["best"][1].at("step_time_s"));
  EXPECT_EQ(answer["best"][0].at("layout").at("tp"), 1);
  const auto& counts = answer.at("counts").at(0);
  EXPECT_EQ(counts.at("enumerated").get<std::int64_t>(),
            counts.at("pruned").get<std::int64_t>() + counts.at("legal").get<std::int64_t>());
  std::int64_t pruned = 0;
  for (const auto& rule : counts.at("pruned_by")) pruned += rule.at("layouts").get<std::int64_t>();
  EXPECT_EQ(pruned, counts.at("pruned").get<std::int64_t>());
  std::int64_t total = 0;
  for (const auto& [key, value] : answer.at("memory_of_best").items()) {
    if (key.ends_with("_bytes") && key != "total_bytes") total += value.get<std::int64_t>();
  }
  EXPECT_EQ(total, answer["memory_of_best"].at("total_bytes").get<std::int64_t>());
  EXPECT_EQ(total, answer["best"][0].at("memory_bytes").get<std::int64_t>());
}

TEST(Plan, ReturnsOneWithTheCheapestChangeWhenNothingFits) {
  const Outcome outcome = plan({"--model", "llama-3.1-405b", "--gpus", "8"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("Nothing fits: the smallest layout takes"));
  EXPECT_THAT(outcome.out, HasSubstr("Cheapest change: "));
}

TEST(Plan, AnswersWhyNot) {
  const auto ask = [](const std::string& what) {
    return plan({"--model", "llama-3.1-70b", "--gpus", "64", "--why-not", what}).out;
  };
  EXPECT_THAT(ask("tp=7"), HasSubstr("7 does not divide 64 attention heads"));
  EXPECT_THAT(ask("tp=1,pp=1"), HasSubstr("Does not fit"));
  EXPECT_THAT(ask("recompute=full"), HasSubstr("Slower by"));
}

TEST(Plan, RanksSeveralCountsOfGpusTogether) {
  const Outcome outcome =
      plan({"--model", "llama-3.1-8b", "--gpus", "8,16,32", "--rank-by", "memory"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("GPUs"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace shardwise::cli
