// Every flag of shardwise-run that takes a number refuses what is none, and says its name (D10,
// D18).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/flags.h"

namespace shardwise::exec {
namespace {

using shardwise::test::HelpFlag;
using shardwise::test::Outcome;
using testing::HasSubstr;

/// \param verb  "train" or "calibrate"
Outcome run_verb(const std::string& verb, std::vector<std::string> words) {
  words.insert(words.begin(), verb);
  return shardwise::test::run_program(shardwise::test::built("shardwise-run"), words);
}

class EveryRunVerb : public testing::TestWithParam<std::string> {};

TEST_P(EveryRunVerb, RefusesWhatIsNoNumberByTheNameOfTheFlag) {
  const std::string& verb = GetParam();
  const Outcome all = run_verb(verb, {"--help-all"});
  const std::string help = all.exit_code == 0 ? all.out : run_verb(verb, {"--help"}).out;
  int flags = 0;
  for (const HelpFlag& flag : shardwise::test::flags_in_help(help)) {
    const std::string plan = verb == "train" ? "no-plan.json" : "--name=a";
    const Outcome word = run_verb(verb, {plan, flag.name + "=zebra", "--no-such-flag"});
    EXPECT_EQ(word.exit_code, 2);
    EXPECT_THAT(word.err, Not(HasSubstr("onvert"))) << flag.name;  // CLI11's "Could not convert"
    if (!flag.takes_number()) continue;
    ++flags;
    std::vector<std::string> texts = {"nan", "-inf", "1e400", "0x10", "", " ", "1x", "1e30"};
    if (flag.name != "--ignored-token") texts.emplace_back("-1");
    texts.emplace_back("18446744073709551616");
    for (const std::string& text : texts) {
      SCOPED_TRACE(flag.name + "=" + text);
      const Outcome outcome = run_verb(verb, {plan, flag.name + "=" + text});
      ASSERT_EQ(outcome.exit_code, 2) << outcome.err;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, HasSubstr(flag.name));
    }
  }
  EXPECT_GE(flags, verb == "train" ? 15 : 3);
}
INSTANTIATE_TEST_SUITE_P(Verbs, EveryRunVerb, testing::Values("train", "calibrate"),
                         [](const auto& each) { return each.param; });

TEST(RunFields, OfNcclAreReadBeforeThePlanIs) {
  const Outcome outcome = run_verb("train", {"no-plan.json", "--nccl=min_ctas=many"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--nccl: min_ctas=many is not known; use 0 (NCCL's choice)"));
}

TEST(RunNumbers, AreRefusedWithTheirRange) {
  const auto line = [](const std::string& flag, const std::string& text) {
    const Outcome outcome = run_verb("train", {"no-plan.json", flag, text});
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_EQ(line("--seed", "18446744073709551616"),
            "shardwise-run: --seed: 18446744073709551616 is not an integer from 0 to "
            "18446744073709551615 (see shardwise-run train --help)\n");
  EXPECT_THAT(line("--seed", "-1"), HasSubstr("--seed: -1 is not an integer from 0 to"));
  EXPECT_THAT(line("--timeout", "nan"), HasSubstr("--timeout: nan is not a number from 0.001 to"));
  for (const char* rate : {"--learning-rate", "--clip-norm"}) {
    EXPECT_THAT(line(rate, "nan"), HasSubstr(std::string(rate) + ": nan is not a number from 0"));
  }
  for (const char* size : {"0", "-5GB", "9e30", "18446744073709551611gb"}) {
    EXPECT_THAT(line("--max-shard-size", size),
                HasSubstr(std::string("--max-shard-size: ") + size + " is not a size from 1 B to"));
  }
}

TEST(RunNumbers, AreNoNamesOfTypes) {
  for (const char* text : {"1", "0x1", "nan", "fp16"}) {
    const Outcome outcome = run_verb("train", {"no-plan.json", "--save-weights-dtype", text});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, "shardwise-run: --save-weights-dtype: " + std::string(text) +
                               " is not fp32 or bf16 (see shardwise-run train --help)\n");
  }
}

// The largest seed is one: what is wrong is the plan.
TEST(RunNumbers, ReachTheEndsOfTheirRange) {
  const Outcome outcome = run_verb("train", {"no-plan.json", "--seed", "18446744073709551615"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no-plan.json: no such file"));
}

}  // namespace
}  // namespace shardwise::exec
