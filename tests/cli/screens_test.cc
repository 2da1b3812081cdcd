// The first screen of a verb is a screen: at most 40 lines of 80 columns, and --long has the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "planner/spec/text/table.h"
#include "tests/cli/command.h"
#include "tests/cli/tiny_step.h"

namespace shardwise::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int kScreenLines = 40;
constexpr std::size_t kScreenWidth = 80;

void expect_screen(const std::vector<std::string>& words) {
  const Outcome outcome = shardwise(words);
  EXPECT_LE(outcome.exit_code, 1) << words.front() << ": " << outcome.err;
  EXPECT_LE(std::count(outcome.out.begin(), outcome.out.end(), '\n'), kScreenLines)
      << words.front() << "\n"
      << outcome.out;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), kScreenWidth) << words.front() << ": " << line;
  }
}

const std::vector<std::string> kPipeline = {
    "--model", "llama-3.1-70b",       "--cluster", "dgx-h100", "--gpus", "128", "--tp", "2", "--pp",
    "16",      "--global-batch-size", "64"};

std::vector<std::string> verb_with(std::string verb, std::vector<std::string> words,
                                   const std::vector<std::string>& more = {}) {
  words.insert(words.begin(), std::move(verb));
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(FirstScreen, FitsATerminal) {
  expect_screen(verb_with("estimate", kPipeline));
  expect_screen(verb_with("simulate", kPipeline));
  expect_screen(verb_with("simulate", kPipeline, {"--trials", "2", "--jitter", "0.1"}));
  expect_screen({"plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--gpus", "64"});
  // Experts, and an assumption about their GEMMs: fewer layouts fit beside them.
  expect_screen({"plan", "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--gpus", "16",
                 "--lock", "pp=2"});
  expect_screen({"score", "tests/golden/measurements_made_up.jsonl"});
  expect_screen({"score", "examples/public.jsonl"});
}

// The table said 50.7 %, the footer 50.8 %: one was simulated, the other not.
TEST(FirstScreen, OfPlanHasOneMfu) {
  const std::string text = shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                      "--gpus", "16", "--engine", "megatron_ddp"})
                               .out;
  const auto at = [&text](const std::regex& pattern) {
    std::smatch found;
    return std::regex_search(text, found, pattern) ? found[1].str() : "none";
  };
  EXPECT_EQ(at(std::regex("\n1 +[^ ]+ [mu]?s +[^ ]+ [mu]?s +([0-9.]+ %)")),
            at(std::regex("\nsimulated: .*; MFU ([0-9.]+ %)")))
      << text;
  EXPECT_THAT(text, HasSubstr("on the slowest stage, simulated\n"));
}

// Ninety lines were.
TEST(FirstScreen, OfPlanHasAFrontThatFits) {
  const std::string text = shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                      "--gpus", "32", "--engine", "megatron_ddp", "--pareto"})
                               .out;
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;
  EXPECT_THAT(text, ContainsRegex("Pareto front [^\n]*, 15 of [0-9]+ \\(--long\\)"));
}

TEST(FirstScreen, OfSizeFitsATerminal) {
  // Most offers, long names with layouts of several lines, and no offer.
  expect_screen({"size", "--model", "gpt2", "--tokens", "1e11", "--days", "30"});
  expect_screen({"size", "--model", "llama-3.1-405b", "--tokens", "1e12", "--days", "60",
                 "--sequence-length", "131072", "--cluster", "azure-nd-mi300x-v5", "--cluster",
                 "gcp-a3-ultra"});
  expect_screen({"size", "--model", "gpt2", "--tokens", "1e15", "--days", "1", "--max-gpus", "8"});
}

TEST(FirstScreen, OfCompareFitsATerminal) {
  const std::string folder = testing::TempDir();
  const std::string a = folder + "first_screen_a.json";
  const std::string b = folder + "first_screen_b.json";
  ASSERT_EQ(shardwise(tiny_step({"-o", a})).exit_code, 0);
  ASSERT_EQ(
      shardwise(verb_with("simulate", kPipeline, {"-o", b, "--sequence-length", "1024"})).exit_code,
      0);
  expect_screen({"compare", a, b});
  const std::string rows = shardwise({"compare", a, b}).out;
  EXPECT_THAT(rows, HasSubstr(" more (--top)"));
  EXPECT_GT(shardwise({"compare", a, b, "--long"}).out.size(), rows.size());
  std::remove(a.c_str());
  std::remove(b.c_str());
}

// Compute and the three largest of the other parts, each a hundredth of the step at least, largest
// first; what is left adds up.
TEST(FirstScreen, NamesTheThreeLargestCosts) {
  const std::string text = shardwise(verb_with("estimate", kPipeline)).out;
  const auto json =
      nlohmann::json::parse(shardwise(verb_with("estimate", kPipeline, {"--json"})).out);
  EXPECT_THAT(text, StartsWith("Fits: "));
  EXPECT_THAT(text, ContainsRegex("Time of a step on the slowest stage, closed-form estimate\n"
                                  "  forward and backward .*\n"
                                  "  pipeline bubble .*\n"
                                  "(  .*\n)?(  .*\n)?"
                                  "  [0-9]+ smaller parts .*\n"
                                  "  step  .* 100.0 %\n"));
  EXPECT_THAT(text, ContainsRegex("Memory of the fullest GPU at its peak, stage [0-9]+ of 16\n"
                                  "(  .*\n)+  total  .* 100.0 %\n"));
  double largest = 0;
  std::string name;
  for (const auto& [part, seconds] : json["time"].items()) {
    if (part == "forward_s" || part == "backward_s" || seconds.get<double>() <= largest) continue;
    largest = seconds.get<double>();
    name = part;
  }
  EXPECT_EQ(name, "bubble_s");
}

TEST(FirstScreen, LeavesTheRestToLong) {
  const std::string first = shardwise(verb_with("estimate", kPipeline)).out;
  const std::string all = shardwise(verb_with("estimate", kPipeline, {"--long"})).out;
  for (const char* fact :
       {"runtime context", "kernel launches", "checkpoint", "energy", "after init"}) {
    EXPECT_THAT(first, Not(HasSubstr(fact)));
    EXPECT_THAT(all, HasSubstr(fact));
  }
  EXPECT_THAT(first, HasSubstr("--long: memory by phase"));
  const std::string simulated = shardwise(verb_with("simulate", kPipeline, {"--long"})).out;
  for (const char* fact :
       {"stage 15 compute", "buffers at the peak", "shared links", "a rank sends"}) {
    EXPECT_THAT(simulated, HasSubstr(fact));
  }
}

// The undisturbed step was on the first line, the answer on line 66.
TEST(FirstScreen, OfTrialsLeadsWithTheirMedianAndTail) {
  const Outcome outcome = shardwise(tiny_step({"--trials", "5", "--jitter", "0.1"}));
  EXPECT_THAT(outcome.out,
              ContainsRegex("^step [^\n]* \\(p50\\), [^\n]* \\(p95\\) in 5 trials with "
                            "noise; [^\n]* undisturbed\nundisturbed: computing "));
  EXPECT_THAT(outcome.out, ContainsRegex("\nTime of a step, undisturbed, simulated\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("\np50 of 5 trials: "));
  // Without a flag that disturbs a step there is no noise to speak of.
  EXPECT_THAT(shardwise(tiny_step({"--trials", "2", "--mtbf-hours-per-gpu", "1000"})).out,
              ContainsRegex("^step [^\n]* in 2 trials, all alike: no noise, set --jitter or "
                            "--slow-nodes\ngoodput "));
}

// Curves that nobody measured on a GPU are said on the first screen and in JSON, by every verb
// that predicts a time; a GPU with measured curves has no such line.
TEST(FirstScreen, SaysWhichCurvesWereNotMeasured) {
  const char* said = "not measured on mi308x: GEMMs, attention, attention gradients,";
  for (const char* verb : {"estimate", "plan", "simulate"}) {
    SCOPED_TRACE(verb);
    std::vector<std::string> ask = {
        verb, "--model", "gpt2", "--cluster", "mi308x", "--gpus", "2", "--global-batch-size", "16"};
    const Outcome screen = shardwise(ask);
    EXPECT_THAT(screen.out, HasSubstr(std::string("assumed: ") + said)) << screen.err;
    ask.emplace_back("--json");
    EXPECT_THAT(shardwise(ask).out, HasSubstr(said));
    ask.pop_back();
    ask[4] = "dgx-h100";
    EXPECT_THAT(shardwise(ask).out, testing::Not(HasSubstr("not measured")));
  }
}

}  // namespace
}  // namespace shardwise::cli
