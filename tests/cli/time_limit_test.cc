// Questions that have no end of their own that a user would wait for (docs/simulator.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Each takes longer than a second on any machine of today.
const std::vector<std::vector<std::string>>& long_questions() {
  static const std::vector<std::vector<std::string>> kQuestions = {
      {"plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--gpus", "256", "--space",
       "full"},
      {"plan", "--model", "flan-t5-xxl", "--cluster", "a800-ib", "--gpus", "2048", "--engine",
       "all", "--space", "full", "--json"},
      {"simulate", "--model", "gemma-3-1b", "--cluster", "oci-h200", "--global-batch-size", "65536",
       "--cp", "2", "--precision", "bf16", "--ignore-memory", "--trials", "100"},
      {"size", "--model", "mixtral-8x22b", "--tokens", "1", "--days", "1"},
  };
  return kQuestions;
}

void expect_ended(std::vector<std::string> question) {
  question.insert(question.end(), {"--time-limit", "300ms"});
  const Outcome ended = shardwise(question);
  EXPECT_EQ(ended.exit_code, 3) << question[0] << ended.err;
  EXPECT_EQ(ended.out, "") << question[0];
  EXPECT_THAT(ended.err,
              AllOf(StartsWith("shardwise: this computes for longer than the 300 ms that "
                               "--time-limit allows"),
                    EndsWith("\n")))
      << question[0];
}

TEST(TimeLimit, EndsEveryLongQuestionWithTheLimit) {
  for (const std::vector<std::string>& question : long_questions()) expect_ended(question);
}

TEST(TimeLimit, LeavesNoHalfOfAPage) {
  const test::Scratch scratch;
  const std::string plan = scratch.path("plan.json");
  ASSERT_EQ(shardwise({"plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--gpus", "256",
                       "-o", plan})
                .exit_code,
            0);
  expect_ended({"report", plan, "-o", scratch.path("page.html")});
  for (const auto& each : std::filesystem::directory_iterator(scratch.folder())) {
    EXPECT_EQ(each.path().filename(), "plan.json");
  }
}

TEST(TimeLimit, SaysHowFarASearchWas) {
  std::vector<std::string> question = long_questions().front();
  question.insert(question.end(), {"--time-limit", "2s"});
  const Outcome ended = shardwise(question);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, HasSubstr("the 2.00 s that --time-limit allows; it was at: "));
}

TEST(TimeLimit, LeavesAShortQuestionAndAnInterruptAlone) {
  for (const char* limit : {"10s", "10", "0.5 min", "1h", "36500"}) {
    const Outcome answered = shardwise({"estimate", "--model", "gpt2", "--cluster", "dgx-h100",
                                        "--gpus", "1", "--time-limit", limit});
    EXPECT_EQ(answered.exit_code, 0) << answered.err;
    EXPECT_THAT(answered.err, Not(HasSubstr("--time-limit")));
  }
  std::vector<std::string> question = {"--preserve-status", "-s", "INT", "1",
                                       test::built("shardwise")};
  const std::vector<std::string>& asked = long_questions().front();
  question.insert(question.end(), asked.begin(), asked.end());
  EXPECT_EQ(test::run_program("/usr/bin/timeout", question).exit_code, 128 + 2);
}

TEST(TimeLimit, LeavesThePlanWithItsTableWhereOnlyTheLeversAreMissing) {
  const test::Scratch scratch;
  const std::string plan = scratch.path("plan.json");
  // The changes are questions of their own, and take five times as long as the first.
  std::vector<std::string> question = {
      "plan", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--gpus", "64", "--levers",
      "-o",   plan,      "--time-limit",  ""};
  Outcome ended;
  for (int limit = 100; limit < 100'000 && !std::filesystem::exists(plan); limit *= 2) {
    question.back() = std::to_string(limit) + "ms";
    ended = shardwise(question);
    EXPECT_EQ(ended.exit_code, 3);
    EXPECT_EQ(ended.out.empty(), !std::filesystem::exists(plan));
  }
  EXPECT_THAT(ended.out, AllOf(HasSubstr("GiB"), EndsWith("wrote " + plan + "\n")));
  EXPECT_THAT(ended.err, AllOf(StartsWith("shardwise: this computes for longer than the "),
                               EndsWith("; only the levers are missing\n")));
  EXPECT_EQ(shardwise({"simulate", plan}).exit_code, 0);
}

// A plain `ulimit -t` sets the hard limit too, at which the kernel kills.
TEST(TimeLimit, AnswersTheShellsLimit) {
  const std::string command = "ulimit -t 1; exec \"$@\"";
  std::vector<std::string> words = {"-c", command, "sh", test::built("shardwise")};
  const std::vector<std::string>& asked = long_questions().front();
  words.insert(words.end(), asked.begin(), asked.end());
  const Outcome ended = test::run_program("/bin/sh", words);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, "shardwise: this computes for longer than `ulimit -t` allows\n");
}

TEST(TimeLimit, SaysWhatItCountsWhereAnotherProgramTrains) {
  const std::string counted = "search and predictions, not the training,";
  EXPECT_THAT(shardwise({"measure", "--help-all"}).out, HasSubstr("How long " + counted));
  EXPECT_THAT(shardwise({"plan", "--help-all"}).out, Not(HasSubstr(counted)));
}

TEST(TimeLimit, RefusesWhatIsNoTime) {
  for (const char* wrong : {"12kg", "-1", "0", "nan", "1e999", "10 d", "s", "0.01s"}) {
    const Outcome refused = shardwise({"estimate", "--model", "gpt2", "--cluster", "dgx-h100",
                                       "--gpus", "1", "--time-limit", wrong});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(std::string("--time-limit: ") + wrong +
                                             " is not a time from 100 ms to "),
                                   HasSubstr("a number alone counts seconds")))
        << wrong;
  }
}

}  // namespace
}  // namespace shardwise::cli
