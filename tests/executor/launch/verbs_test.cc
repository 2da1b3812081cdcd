#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Verbs, AreListedAndHaveAHelpEach) {
  const Outcome all = shardwise_run({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out,
              ContainsRegex(
                  "\n  train +[A-Z].*\n  calibrate +[A-Z].*\n  verify +[A-Z].*\n  status +[A-Z]"));
  EXPECT_THAT(all.out, HasSubstr("shardwise-run plan.json is short for shardwise-run train "));
  EXPECT_THAT(all.out, Not(HasSubstr("--learning-rate")));
  for (const char* verb : {"train", "calibrate", "verify", "status"}) {
    const Outcome one = shardwise_run({verb, "--help"});
    EXPECT_EQ(one.exit_code, 0);
    EXPECT_THAT(one.out, HasSubstr(std::string("Usage: shardwise-run ") + verb + " "));
    EXPECT_LE(std::ranges::count(one.out, '\n'), 45);
  }
  EXPECT_THAT(shardwise_run({"train", "--help"}).out, Not(HasSubstr("--clip-norm")));
  EXPECT_THAT(shardwise_run({"train", "--help-all"}).out, HasSubstr("--clip-norm"));
  const Outcome handed = run_program(built("shardwise"), {"run", "--help"});
  EXPECT_EQ(handed.out, shardwise_run({"train", "--help"}).out);
}

TEST(Verbs, MayBeLeftOutBeforeAPlan) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 0, 1, 1));
  const std::vector<std::string> rest = {plan, "--data", "docs/memory.md", "--steps", "1"};
  for (const bool said : {false, true}) {
    std::vector<std::string> words = rest;
    if (said) words.insert(words.begin(), "train");
    const Outcome done = shardwise_run(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("step 1/1"));
  }
  EXPECT_EQ(shardwise_run({"--steps", "1", "--data", "docs/memory.md", plan}).exit_code, 0);
}

TEST(Verbs, AreNamedWhereTheyAreMissingOrMisspelt) {
  const auto said = [](const std::vector<std::string>& words) {
    const Outcome wrong = shardwise_run(words);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.out, IsEmpty());
    return wrong.err;
  };
  EXPECT_EQ(said({}), "shardwise-run: no verb given (see shardwise-run --help)\n");
  EXPECT_EQ(said({"trian", "plan.json"}),
            "shardwise-run: unknown verb trian (did you mean train?)\n");
  EXPECT_EQ(said({"train"}), "shardwise-run: plan is missing (see shardwise-run train --help)\n");
  EXPECT_EQ(said({"train", "plan.json", "calibrate"}),
            "shardwise-run: unknown argument calibrate (see shardwise-run train --help)\n");
  EXPECT_THAT(said({"no-plan.json"}), HasSubstr("no-plan.json: no such file\n"));
}

TEST(Verbs, SuggestTheFlagThatWasMeant) {
  const auto said = [](const std::vector<std::string>& words) {
    const Outcome wrong = shardwise_run(words);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.out, IsEmpty());
    return wrong.err;
  };
  const auto meant = [](const char* typed, const char* flag) {
    return std::string("shardwise-run: unknown flag ") + typed + " (did you mean " + flag + "?)\n";
  };
  EXPECT_EQ(said({"train", "plan.json", "--lr", "1e-3"}), meant("--lr", "--learning-rate"));
  EXPECT_EQ(said({"plan.json", "--stpes=3"}), meant("--stpes", "--steps"));
  EXPECT_EQ(said({"plan.json", "--load", "x"}), meant("--load", "--resume or --init-from"));
  EXPECT_EQ(said({"--save-interval", "3"}), meant("--save-interval", "--checkpoint-every"));
  // What the plan decides, its program's flag.
  EXPECT_EQ(said({"plan.json", "--gbs", "4"}),
            meant("--gbs", "shardwise plan --global-batch-size"));
  EXPECT_EQ(said({"plan.json", "--batch-size", "4"}),
            meant("--batch-size", "shardwise plan --global-batch-size"));
  EXPECT_EQ(said({"plan.json", "--tp-size", "4"}),
            meant("--tp-size", "shardwise plan --lock tp=4"));
  EXPECT_EQ(said({"plan.json", "--output-file", "x"}), meant("--output-file", "--report"));
  // Not "--output is missing".
  EXPECT_EQ(said({"calibrate", "--outpt", "x"}), meant("--outpt", "--output"));
  EXPECT_EQ(said({"calibrate", "--data", "x"}),
            "shardwise-run: unknown flag --data (a flag of train)\n");
  EXPECT_EQ(said({"plan.json", "--zzz"}),
            "shardwise-run: unknown flag --zzz (see shardwise-run train --help)\n");
  EXPECT_EQ(said({"plan.json", "--lr", "1", "--step", "2"}),
            meant("--lr", "--learning-rate") + meant("--step", "--steps"));
}

TEST(Verbs, HelpShowsTwelveFlagsAtMostAndHelpAllTheRest) {
  const auto flags_in = [](const std::string& help) {
    int flags = 0;
    for (std::size_t at = 0; (at = help.find("\n  -", at)) != std::string::npos; ++at) ++flags;
    return flags;
  };
  for (const char* verb : {"train", "calibrate", "verify", "status"}) {
    const std::string help = shardwise_run({verb, "--help"}).out;
    EXPECT_LE(flags_in(help), 12) << verb;
    EXPECT_THAT(help, HasSubstr("Examples\n  shardwise-run "));
  }
  const std::string all = shardwise_run({"train", "--help-all"}).out;
  EXPECT_THAT(shardwise_run({"train", "--help"}).out,
              HasSubstr("All " + std::to_string(flags_in(all)) + " flags: "));
}

}  // namespace
}  // namespace shardwise::exec::test
