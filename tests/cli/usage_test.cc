#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "planner/spec/command_words.h"
#include "planner/spec/table.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Command, PrintsItsVersion) {
  const Outcome outcome = shardwise({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("shardwise [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Command, HelpHasExamplesAndExitCodes) {
  const Outcome outcome = shardwise({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("shardwise plan --model"));
  EXPECT_THAT(outcome.out, HasSubstr("2 bad input or use"));
}

TEST(Command, HelpOfEveryVerbFitsATerminal) {
  for (const char* verb :
       {"estimate", "plan", "simulate", "compare", "score", "calibrate", "size", "list", ""}) {
    std::vector<std::string> words = {"--help"};
    if (*verb != '\0') words.insert(words.begin(), verb);
    const Outcome outcome = shardwise(words);
    EXPECT_EQ(outcome.exit_code, 0) << verb;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), kHelpWidth) << verb << ": " << line;
    }
  }
}

// A script whose variable is not set.
TEST(Command, RefusesAnEmptyValueOfAnyFlag) {
  for (const char* flag : {"--output", "--trace", "--svg", "--chakra", "--import", "--versus",
                           "--tp", "--gpus", "--engine"}) {
    const Outcome outcome =
        shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100", flag, ""});
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_EQ(outcome.err, "shardwise: " + std::string(flag) +
                               " needs a value (see shardwise simulate --help)\n");
  }
}

TEST(Command, SaysWhichSchedulesHaveChunksOfTheirOwn) {
  const std::string help = shardwise({"simulate", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("they have two of their own"));
  const Outcome outcome =
      shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100", "--engine", "shardwise",
                 "--pp", "2", "--vpp", "2", "--schedule", "zb_v", "--global-batch-size", "16"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the schedule is zb_v, which has two of its own"));
}

TEST(List, NamesEveryKindOfTheCatalogue) {
  for (const auto& [kind, entry] :
       std::map<std::string, std::string>{{"models", "llama-3.1-8b"},
                                          {"clusters", "dgx-h100"},
                                          {"gpus", "mi300x"},
                                          {"collectives", "nvlink4-h100"},
                                          {"engines", "fsdp2"}}) {
    const Outcome text = shardwise({"list", kind});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_THAT(text.out, HasSubstr("\n" + entry + " "));
    const auto json = nlohmann::json::parse(shardwise({"list", kind, "--json"}).out);
    EXPECT_EQ(json["schema"], "shardwise.list/1");
    const std::string table = text.out.substr(0, text.out.find("\n\n"));  // the first
    const auto lines = std::ranges::count(table, '\n') + (table == text.out ? 0 : 1);
    EXPECT_EQ(json["entries"].size(), static_cast<std::size_t>(lines - 2));  // without the heading
  }
}

TEST(List, SaysWhichEnginesRunASchedule) {
  const Outcome text = shardwise({"list", "engines"});
  EXPECT_THAT(text.out, testing::ContainsRegex("\none_f_one_b +--vpp +every engine with pp\n"));
  EXPECT_THAT(text.out, testing::ContainsRegex("\nzb_v +2 +fsdp2 shardwise\n"));
  const auto json = nlohmann::json::parse(shardwise({"list", "engines", "--json"}).out);
  for (const auto& engine : json["entries"]) {
    // As each engine is refused what it does not run.
    const bool runs = std::ranges::count(engine["schedules"], "zb_h2") > 0;
    const Outcome asked = shardwise({"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                     "--pp", "2", "--schedule", "zb_h2", "--global-batch-size",
                                     "16", "--engine", engine["name"].get<std::string>()});
    EXPECT_EQ(asked.exit_code != 2, runs) << engine["name"] << asked.err;
  }
}

TEST(List, RefusesAnotherKind) {
  const Outcome outcome = shardwise({"list", "planets"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("planets"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

}  // namespace
}  // namespace shardwise::cli
