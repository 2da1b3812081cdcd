#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Outcome plan_any(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"plan", "--cluster", "dgx-h100", "--threads", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return shardwise(arguments);
}

/// Of one engine, where the choice of engines is not the subject.
Outcome plan(std::vector<std::string> more) {
  more.insert(more.begin(), {"--engine", "megatron_ddp"});
  return plan_any(more);
}

/// Engines that are searched where none is named.
std::string searched() {
  return std::to_string(engines_of_today(*find_cluster("dgx-h100")).size());
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
  EXPECT_THAT(outcome.out, HasSubstr("llama-3.1-70b, 70.6 B parameters, 64 GPUs of dgx-h100"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("combinations, [0-9,]+ valid: "));
  EXPECT_THAT(outcome.out, HasSubstr("optimizer moments"));
  EXPECT_THAT(outcome.out, HasSubstr("assumed: batch of 1,024 sequences"));
  EXPECT_LE(widest_line(outcome.out), 100U);
}

// Without --engine, those that a user can run on this cluster are searched (first hour, 1).
TEST(Plan, TakesTheFastestEngineThatRunsTodayAndSaysWhatTheOthersGive) {
  const std::vector<std::string> job = {"--model", "gpt2", "--gpus", "4", "--global-batch-size",
                                        "64"};
  const Outcome outcome = plan_any(job);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> more = job;
  more.emplace_back("--json");
  const nlohmann::json answer = nlohmann::json::parse(plan_any(more).out);
  const std::string taken = answer.at("engine_taken");
  EXPECT_THAT(outcome.out,
              HasSubstr("Best engine: " + taken + " (of " + searched() + " searched)"));
  ASSERT_EQ(std::to_string(answer.at("engines").size()), searched());
  double least = 1e300;
  std::string fastest;
  for (const auto& engine : answer["engines"]) {
    EXPECT_NE(engine.at("engine"), "shardwise");
    EXPECT_NE(engine.at("engine"), "megatron_deepspeed");
    if (engine.at("best").is_null()) continue;
    const double step = engine["best"].at("simulated_step_time_s");
    if (step < least) fastest = engine["engine"];
    least = std::min(least, step);
    // Asked alone, the engine gives the same.
    const std::string name = engine["engine"];
    if (name != "fsdp2" && name != "deepspeed") continue;
    more = job;
    more.insert(more.end(), {"--json", "--engine", name});
    const nlohmann::json alone = nlohmann::json::parse(plan_any(more).out);
    EXPECT_TRUE(alone.at("engine_taken").is_null());
    EXPECT_LE(alone.at("best").at(0).at("simulated_step_time_s"), step);
    EXPECT_EQ(alone["engines"].size(), 1U);
  }
  EXPECT_EQ(taken, fastest);
  for (const auto& row : answer.at("best")) EXPECT_EQ(row.at("engine"), taken);
  EXPECT_EQ(answer.at("best").at(0).at("simulated_step_time_s"), least);
  EXPECT_FALSE(answer.at("front").empty());
}

// The engine is taken by what layouts are ranked by.
TEST(Plan, TakesTheEngineThatRanksFirst) {
  const Outcome outcome = plan_any(
      {"--model", "gpt2", "--gpus", "2", "--global-batch-size", "16", "--rank-by", "memory"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\nBest engine by memory: [a-z_0-9]+ \\(of " +
                                                  searched() + " searched\\)"));
}

// A cluster of CPUs runs our own executor.
TEST(Plan, TakesOurExecutorOnCpus) {
  const Outcome outcome = shardwise({"plan", "--model", "gpt2", "--cluster", "laptop", "--gpus",
                                     "2", "--sequence-length", "512", "--global-batch-size", "8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("of laptop, shardwise, batch 8 x 512"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("the fastest of")));
}

// An engine that refuses the question does not stop the others; its reason is given.
TEST(Plan, SaysWhichEnginesRefuse) {
  const Outcome outcome = plan_any({"--model", "gpt2", "--gpus", "4", "--global-batch-size", "64",
                                    "--lock", "zero_stage=3", "--lock", "tp=1", "--long"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("megatron_ddp refuses: --zero-stage: megatron_ddp has no ZeRO stage 3"));
}

// The same question has the same answer: one default batch (first hour, 2), and plan's best is what
// simulate takes (3), with the step by which plan ranks (F4).
TEST(Plan, AgreesWithEstimateAndSimulate) {
  const std::vector<std::string> job = {
      "--model", "gpt2-xl", "--cluster",   "aws-p4d", "--engine", "fsdp2",
      "--gpus",  "16",      "--json",      "--top",   "3",        "--sequence-length",
      "1024",    "--lock",  "dp_shard=16", "--lock",  "tp=1"};
  std::vector<std::string> arguments = {"plan"};
  arguments.insert(arguments.end(), job.begin(), job.end());
  const nlohmann::json answer = nlohmann::json::parse(shardwise(arguments).out);
  const nlohmann::json& best = answer.at("best").at(0);
  const auto& layout = best.at("layout");
  for (const char* verb : {"estimate", "simulate"}) {
    arguments = {verb, "--json"};
    arguments.insert(arguments.end(), job.begin(), job.begin() + 8);
    arguments.insert(arguments.end(), {"--sequence-length", "1024"});
    for (const char* key : {"micro_batch_size", "zero_stage", "cp", "dp_shard"}) {
      std::string flag = std::string("--") + key;
      std::ranges::replace(flag, '_', '-');
      arguments.insert(arguments.end(), {flag, std::to_string(layout.at(key).get<int>())});
    }
    arguments.insert(arguments.end(),
                     {"--reshard-after-forward",
                      layout.at("reshard_after_forward").get<bool>() ? "true" : "false",
                      "--recompute", layout.at("recompute").get<std::string>()});
    const Outcome outcome = shardwise(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const nlohmann::json report = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(report.at("global_batch_size"), answer.at("job").at("global_batch_size"));
    const char* key = *verb == 'e' ? "step_time_s" : "simulated_step_time_s";
    EXPECT_EQ(report.at("step_time_s"), best.at(key)) << verb;
  }
}

// The best by the step-time model are ranked by their simulated steps (F4); rows within the error
// of the model on such runs are marked.
TEST(Plan, RanksTheBestByTheirSimulatedSteps) {
  const nlohmann::json answer = nlohmann::json::parse(
      shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "aws-p4d", "--gpus", "32",
                 "--engine", "megatron_ddp", "--sequence-length", "2048", "--global-batch-size",
                 "64", "--json"})
          .out);
  EXPECT_EQ(answer.at("ranked_by_step"), "simulated");
  const double band = answer.at("tie_band").at("share");
  EXPECT_GT(band, 0.01);
  const auto& best = answer.at("best");
  ASSERT_GE(best.size(), 3U);
  bool reordered = false;
  bool differs = false;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const double step = best[i].at("simulated_step_time_s");
    differs |= step != best[i].at("step_time_s").get<double>();
    EXPECT_EQ(best[i].at("tied_with_best"),
              i > 0 && step <= best[0]["simulated_step_time_s"].get<double>() * (1 + band));
    if (i == 0) continue;
    EXPECT_GE(step, best[i - 1].at("simulated_step_time_s").get<double>());
    reordered |= best[i].at("step_time_s") < best[i - 1].at("step_time_s");
  }
  EXPECT_TRUE(differs);
  EXPECT_TRUE(reordered) << answer.at("best").dump();
}

TEST(Plan, FitsAHundredAndTenColumnsWhenEveryColumnVaries) {
  const Outcome outcome = plan_any(
      {"--model", "mixtral-8x7b", "--gpus", "32", "--engine", "all", "--pareto", "--explain"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Pareto front"));
  EXPECT_THAT(outcome.out, HasSubstr("by the rule"));
  EXPECT_LE(widest_line(outcome.out.substr(0, outcome.out.find("\nFits"))), 110U);
}

TEST(Plan, ExplainsWhatEachRuleDroppedAndEveryNumberOfTheBest) {
  const std::vector<std::string> small = {"--model", "llama-3.1-8b", "--gpus", "16"};
  std::vector<std::string> explained = small;
  explained.emplace_back("--explain");
  const std::string without = plan(small).out;
  const std::string out = plan(explained).out;
  for (const char* words :
       {"by the rule", "\nWhy\n", "steady_forward_backward.weights", "docs/memory.md, States",
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
              HasSubstr("Fixed at one value (--open FIELD searches the others): "));
}

TEST(Plan, AnswersWhyNot) {
  const auto ask = [](const std::string& what) {
    return plan({"--model", "llama-3.1-70b", "--gpus", "64", "--why-not", what}).out;
  };
  EXPECT_THAT(ask("tp=7"), HasSubstr("7 does not divide 64 attention heads"));
  EXPECT_THAT(ask("tp=1,pp=1"),
              testing::ContainsRegex("^With tp 1, pp 1 none of [0-9,]+ layouts "));
  EXPECT_THAT(ask("recompute=full"),
              testing::ContainsRegex("^With recompute full the best of [0-9,]+ layouts that fit is "
                                     "[^ ]+ s \\([^ ]+ %\\) slower\n"));
}

TEST(Plan, RanksSeveralCountsOfGpusTogether) {
  const Outcome outcome =
      plan({"--model", "llama-3.1-8b", "--gpus", "8,16,32", "--rank-by", "memory"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("GPUs"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
}

// On CPUs plan ranks what shardwise run executes, says so, and says which flag lifts it.
TEST(Plan, RanksWhatRunsOnCpusAndSaysHowToSeeMore) {
  std::vector<std::string> ask = {"plan",
                                  "--model",
                                  "qwen3-tiny",
                                  "--cluster",
                                  "laptop",
                                  "--gpus",
                                  "4",
                                  "--sequence-length",
                                  "32",
                                  "--json",
                                  "--global-batch-size",
                                  "8"};
  const auto degrees = [](const Outcome& outcome) {
    std::set<std::int64_t> tp;
    const auto json = nlohmann::json::parse(outcome.out);
    for (const auto& row : json["best"]) tp.insert(row["layout"]["tp"].get<std::int64_t>());
    return tp;
  };
  const Outcome held = shardwise(ask);
  EXPECT_THAT(degrees(held), testing::IsSubsetOf({1, 2})) << held.err;
  EXPECT_THAT(held.out, HasSubstr("shardwise run executes: cp 1, ep 1, offload_optimizer false"));
  EXPECT_THAT(held.out, HasSubstr("(--open FIELD searches the others)"));
  ask.insert(ask.end(), {"--open", "offload_optimizer"});
  EXPECT_THAT(shardwise(ask).out, Not(HasSubstr("offload_optimizer false")));
  ask.resize(ask.size() - 2);
  ask.insert(ask.end(), {"--lock", "tp=2"});
  EXPECT_THAT(degrees(shardwise(ask)), testing::ElementsAre(2));
  ask.resize(ask.size() - 3);
  ask.emplace_back("1");  // a sequence, and more ranks than stages
  *std::ranges::find(ask, "4") = "16";
  const Outcome refused = shardwise(ask);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--open FIELD searches more"));
}

}  // namespace
}  // namespace shardwise::cli
