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
  const Outcome outcome = plan({"--model", "llama-3.1-70b", "--gpus", "64", "--long"});
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

TEST(Plan, ExplainsWhatEachRuleDroppedAndEveryNumberOfTheBest) {
  const std::vector<std::string> small = {"--model", "llama-3.1-8b", "--gpus", "16"};
  std::vector<std::string> explained = small;
  explained.emplace_back("--explain");
  const std::string without = plan(small).out;
  const std::string out = plan(explained).out;
  for (const char* words :
       {"because it breaks", "\nWhy\n", "steady_forward_backward.weights", "docs/memory.md, States",
        "time.forward", "micro-batches x (GEMM + attention", "time.gemm.longest",
        "GEMM shapes interpolated", "\nAssumptions\n"}) {
    EXPECT_THAT(out, HasSubstr(words));
    EXPECT_THAT(without, Not(HasSubstr(words)));
  }
  // What the rules dropped adds up to what was dropped in all.
  std::vector<std::string> counted = small;
  counted.emplace_back("--json");
  const nlohmann::json counts = nlohmann::json::parse(plan(counted).out).at("counts").at(0);
  std::int64_t dropped = 0;
  for (const auto& rule : counts.at("pruned_by")) {
    dropped += rule.at("layouts").get<std::int64_t>();
    EXPECT_THAT(out, HasSubstr(rule.at("text").get<std::string>().substr(0, 20)));
  }
  EXPECT_EQ(dropped, counts.at("pruned").get<std::int64_t>());
  EXPECT_EQ(counts.at("enumerated").get<std::int64_t>(),
            dropped + counts.at("legal").get<std::int64_t>());
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
  EXPECT_EQ(outcome.err,
            "shardwise: /nowhere/plan.json: cannot be written: No such file or directory\n");
}

// /dev/full takes no byte, as a full disk.
TEST(Plan, SaysWhenTheDiskIsFull) {
  const Outcome outcome = plan({"--model", "gpt2", "-o", "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "shardwise: /dev/full: cannot be written: No space left on device\n");
}

TEST(Plan, LeavesNoHalfFileWhereItCannotWrite) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "shardwise_plan_over_a_folder";
  fs::create_directories(folder / "plan.json");
  const Outcome outcome = plan({"--model", "gpt2", "-o", (folder / "plan.json").string()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("plan.json: cannot be written: Is a directory\n"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  fs::remove_all(folder);
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

TEST(Plan, JsonSaysTheSameWhenNothingFits) {
  const Outcome outcome = plan({"--model", "llama-3.1-405b", "--gpus", "8", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const nlohmann::json answer = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(answer.at("best").empty());
  ASSERT_EQ(answer.at("smallest").size(), 1U);
  EXPECT_GT(answer["smallest"][0].at("memory_upper_bytes"), answer.at("usable_bytes"));
  EXPECT_TRUE(answer.contains("cheapest_change"));
}

TEST(Plan, JsonAnswersWhyNot) {
  const auto ask = [](const std::string& what) {
    const Outcome outcome =
        plan({"--model", "llama-3.1-70b", "--gpus", "64", "--why-not", what, "--json"});
    return nlohmann::json::parse(outcome.out);
  };
  const nlohmann::json illegal = ask("tp=7");
  EXPECT_EQ(illegal.at("schema"), "shardwise.why_not/1");
  EXPECT_EQ(illegal.at("answer"), "illegal");
  EXPECT_EQ(illegal.at("reasons").at(0).at("flag"), "--tp");
  EXPECT_FALSE(illegal.contains("asked"));
  const nlohmann::json slower = ask("recompute=full");
  EXPECT_EQ(slower.at("answer"), "slower");
  EXPECT_EQ(slower.at("asked").at("layout").at("recompute"), "full");
  EXPECT_GT(slower["asked"].at("step_time_s"), slower.at("best").at("step_time_s"));
  double parts = 0;
  for (const auto& [key, value] : slower["best"].at("time").items()) parts += value.get<double>();
  EXPECT_NEAR(parts, slower["best"].at("step_time_s").get<double>(), 1e-9 * parts);
  EXPECT_EQ(ask("tp=1,pp=1").at("answer"), "does_not_fit");
}

// What a search leaves out is said, not left to be guessed.
TEST(Plan, SaysWhatNoLayoutVaried) {
  const auto held = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model", "gpt2-xl", "--json", "--lock", "tp=1"});
    return nlohmann::json::parse(plan(more).out).at("held").get<std::vector<std::string>>();
  };
  EXPECT_THAT(held({}),
              testing::IsSupersetOf({"recompute_interval 1", "first_stage_layers 0",
                                     "overlap_grad_reduce true", "offload_optimizer false"}));
  EXPECT_THAT(held({}), Not(testing::Contains("tp 1")));  // locked on purpose
  EXPECT_THAT(held({"--open", "recompute_interval"}),
              Not(testing::Contains("recompute_interval 1")));
  EXPECT_THAT(plan({"--model", "gpt2-xl", "--explain"}).out,
              HasSubstr("Held at one value (--open FIELD searches the others): "));
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
