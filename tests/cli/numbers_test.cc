// Every flag that takes a number refuses what is none, and says its name (D10, D18).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "cli/command.h"
#include "tests/cli/command.h"
#include "tests/cli/names_of_verbs.h"
#include "tests/support/flags.h"

namespace shardwise::cli {
namespace {

using test::HelpFlag;
using testing::HasSubstr;

/// The command in this process: thousands of runs in a moment.
Outcome here(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"shardwise"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto code = run_command(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  Outcome outcome;
  outcome.exit_code = static_cast<int>(code);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

/// What each verb needs beside the flag in question.
const std::map<std::string, std::vector<std::string>>& verbs() {
  static const std::map<std::string, std::vector<std::string>> kVerbs = {
      {"estimate", {"--model", "gpt2", "--cluster", "laptop", "--engine", "shardwise"}},
      {"plan", {"--model", "gpt2", "--cluster", "laptop", "--engine", "shardwise"}},
      {"simulate", {"--model", "gpt2", "--cluster", "laptop", "--engine", "shardwise"}},
      {"measure", {"--model", "gpt2", "--cluster", "laptop", "--engine", "shardwise"}},
      {"compare", {"a.json", "b.json"}},
      {"report", {"plan.json", "--output", "report.html"}},
      {"export", {"plan.json", "--to", "deepspeed"}},
      {"import",
       {"tests/invalid/framework/deepspeed/unknown_key.passes.json", "--model", "gpt2", "--cluster",
        "laptop", "--output", "imported.json"}},
      {"check", {"tests/invalid/framework/deepspeed/unknown_key.passes.json"}},
      {"score", {"rows.jsonl"}},
      {"fit", {"--gpu", "h100-sxm"}},
      {"fits", {"gpt2", "--gpu", "h100-sxm", "--engine", "megatron_ddp"}},
      {"size", {"--model", "gpt2", "--tokens", "1e12", "--days", "30", "--cluster", "laptop"}},
      {"list", {"engines"}},
      {"mfu", {"--model", "gpt2", "--gpu", "h100-sxm", "--tokens-per-second", "100"}},
      {"completion", {"bash"}},
      {"man", {}}};
  return kVerbs;
}

std::vector<HelpFlag> flags_of(const std::string& verb) {
  const Outcome all = here({verb, "--help-all"});
  return test::flags_in_help(all.exit_code == 0 ? all.out : here({verb, "--help"}).out);
}

std::vector<std::string> line_with(const std::string& verb, const std::string& flag,
                                   const std::string& value) {
  std::vector<std::string> words = {verb};
  const std::vector<std::string>& others = verbs().at(verb);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (others[i] == flag) {
      ++i;  // its own value takes the place
    } else {
      words.push_back(others[i]);
    }
  }
  words.push_back(flag + "=" + value);
  return words;
}

class EveryVerb : public testing::TestWithParam<std::string> {};

TEST_P(EveryVerb, RefusesWhatIsNoNumberByTheNameOfTheFlag) {
  const std::string& verb = GetParam();
  for (const HelpFlag& flag : flags_of(verb)) {
    if (!flag.takes_number()) continue;
    SCOPED_TRACE(flag.name);
    std::vector<std::string> texts = test::no_numbers();
    for (const char* text : {"", "-1", "9223372036854775808"}) texts.emplace_back(text);
    for (const std::string& text : texts) {
      SCOPED_TRACE(text);
      const Outcome outcome = here(line_with(verb, flag.name, text));
      ASSERT_EQ(outcome.exit_code, 2) << outcome.err;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, HasSubstr(flag.name));
    }
  }
}

// A flag that CLI11 would convert says so of a word that is no number.
TEST_P(EveryVerb, LeavesNoFlagToTheConversionsOfTheLibrary) {
  for (const HelpFlag& flag : flags_of(GetParam())) {
    std::vector<std::string> words = line_with(GetParam(), flag.name, "zebra");
    words.emplace_back("--no-such-flag");  // so that nothing runs
    const Outcome outcome = here(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, Not(HasSubstr("onvert"))) << flag.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Verbs, EveryVerb, testing::ValuesIn(names_of_verbs()),
                         [](const auto& each) { return each.param; });

// The walk is as good as what it finds in the help.
TEST(Numbers, AreAskedForByTheFlagsThatWeKnow) {
  const auto numbers = [](const std::string& verb) {
    std::vector<std::string> names;
    for (const HelpFlag& flag : flags_of(verb)) {
      if (flag.takes_number()) names.push_back(flag.name);
    }
    return names;
  };
  EXPECT_THAT(numbers("compare"),
              testing::UnorderedElementsAre("--top", "--tolerance", "--memory-tolerance",
                                            "--memory-limit", "--time-limit"));
  EXPECT_THAT(numbers("size"), testing::IsSupersetOf({"--tokens", "--days", "--max-gpus", "--top",
                                                      "--mtbf-hours", "--sequence-length"}));
  EXPECT_THAT(numbers("simulate"), testing::IsSupersetOf({"--jitter", "--trials", "--growth",
                                                          "--tp", "--zero-stage", "--dropout"}));
  EXPECT_THAT(numbers("fit"), testing::IsSupersetOf({"--held-ratio", "--cache-mib"}));
  EXPECT_THAT(numbers("plan"), testing::IsSupersetOf({"--max-memory", "--threads"}));
}

// The lines of the report, in the built program.
TEST(Numbers, OfTheCommandLineAreRefusedWithTheirRange) {
  const Outcome tolerance = shardwise({"compare", "a.json", "b.json", "--tolerance", "nan"});
  EXPECT_EQ(tolerance.exit_code, 2);
  EXPECT_EQ(tolerance.err,
            "shardwise: --tolerance: nan is not a number from 0 to 1000000 "
            "(see shardwise compare --help)\n");
  const Outcome days = shardwise({"size", "--model", "gpt2", "--tokens", "1e12", "--days", "0x10"});
  EXPECT_EQ(days.exit_code, 2);
  EXPECT_EQ(days.err,
            "shardwise: --days: 0x10 is not a number from 0.001 to 36500 "
            "(see shardwise size --help)\n");
  const Outcome ratio = shardwise({"fit", "--gpu", "h100-sxm", "--held-ratio", "nan"});
  EXPECT_EQ(ratio.exit_code, 2);
  EXPECT_THAT(ratio.err, HasSubstr("--held-ratio: nan is not a number from 0.1 to 10"));
  const Outcome cache = shardwise({"fit", "--gpu", "h100-sxm", "--cache-mib", "nan"});
  EXPECT_EQ(cache.exit_code, 2);
  EXPECT_THAT(cache.err, HasSubstr("--cache-mib: nan is not a number from 1 to 1000000"));
}

TEST(Numbers, OfSwitchesAreNone) {
  const Outcome outcome = shardwise({"list", "engines", "--json=5x"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "shardwise: --json: 5x is not true or false (see shardwise list --help)\n");
}

TEST(MaxMemory, TakesUnitsAndGibibytesAlone) {
  for (const char* size : {"1", "1024MiB"}) {
    const Outcome outcome = shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                       "--engine", "megatron_ddp", "--max-memory", size});
    EXPECT_EQ(outcome.exit_code, 1) << size << outcome.err;  // nothing fits
  }
  for (const char* size : {"-5GB", "9e30", "1e30GB", "nanGB", "10parsecs", "GB", "0"}) {
    const Outcome outcome = shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                       "--engine", "megatron_ddp", "--max-memory", size});
    EXPECT_EQ(outcome.exit_code, 2) << size;
    EXPECT_THAT(outcome.err, HasSubstr(std::string("--max-memory: ") + size + " is not a size"));
  }
}

}  // namespace
}  // namespace shardwise::cli
