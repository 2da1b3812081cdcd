#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/table.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> tiny_purchase(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"size",   "--model", "gpt2",      "--tokens", "1e11",
                                        "--days", "10",      "--cluster", "dgx-h100"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(Size, SaysTheCheapestFirst) {
  const Outcome outcome = shardwise(tiny_purchase({}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Cheapest: "));
  EXPECT_THAT(outcome.out, HasSubstr("goodput"));
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Size, FitsEightyColumnsWithLongNamesAndManyAxes) {
  const Outcome outcome = shardwise(
      {"size", "--model", "llama-3.1-405b", "--tokens", "1e12", "--days", "60", "--sequence-length",
       "131072", "--cluster", "azure-nd-mi300x-v5", "--cluster", "gcp-a3-ultra", "--top", "30"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("azure-nd-mi300x-v5"));
  EXPECT_THAT(outcome.out, HasSubstr("tp8 cp32"));
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Size, PrintsAssumptionsAndRefusalsWhenAskedTo) {
  const Outcome brief = shardwise(tiny_purchase({"--cluster", "dgx-1-v100"}));
  EXPECT_THAT(brief.out, testing::Not(HasSubstr("\nAssumed\n")));
  EXPECT_THAT(brief.out, HasSubstr("\n--long: "));
  const Outcome whole = shardwise(tiny_purchase({"--cluster", "dgx-1-v100", "--long"}));
  EXPECT_THAT(whole.out, HasSubstr("\nAssumed\n  a failure stops training"));
  const std::string offers =
      brief.out.substr(0, brief.out.find("\ngpt2: 124 M parameters\n--long: "));
  EXPECT_THAT(brief.out, HasSubstr(" assumptions, 1 cluster misses the deadline\n"));
  EXPECT_THAT(whole.out, StartsWith(offers + "\nMiss the deadline\ncluster "));
}

TEST(Size, OffersInJsonAreInTimeAndAscendInCost) {
  const Outcome outcome = shardwise(tiny_purchase({"--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<JsonValue> json = parse_json(outcome.out, "size");
  ASSERT_TRUE(json.ok());
  const JsonValue* offers = json->find("offers");
  ASSERT_NE(offers, nullptr);
  ASSERT_FALSE(offers->elements.empty());
  double before = 0;
  for (const JsonValue& offer : offers->elements) {
    EXPECT_LE(offer.find("wall_days")->number, 10);
    const double cost = offer.find("gpu_hours")->number;
    EXPECT_GE(cost, before);  // one cluster, one price: GPU-hours rank as dollars do
    before = cost;
    EXPECT_GT(offer.find("goodput")->number, 0.9);
  }
}

// H100's attention gradients are those of the H200, the same chip: that hides no H100 behind a
// dearer B200, and the note says what is borrowed, and from which GPU.
TEST(Size, NamesTheCurveThatIsBorrowedAndTheEngine) {
  const std::vector<std::string> ask = {
      "size",      "--model",  "llama-3.1-8b", "--tokens", "1e11",      "--days", "30",
      "--cluster", "dgx-b200", "--cluster",    "dgx-h100", "--cluster", "mi325x"};
  const Outcome brief = shardwise(ask);
  EXPECT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_THAT(brief.out, testing::ContainsRegex("Cheapest of the measured machines: .* dgx-h100"));
  EXPECT_THAT(
      brief.out,
      HasSubstr("¹ not measured: attention gradients (curve of h200, the same GH100 chip)"));
  EXPECT_THAT(brief.out, HasSubstr("all: engine megatron_ddp (--engine)"));
  std::vector<std::string> program = ask;
  program.emplace_back("--json");
  const Result<JsonValue> json = parse_json(shardwise(program).out, "size");
  ASSERT_TRUE(json.ok());
  bool defaults = false;  // those come last
  for (const JsonValue& offer : json->find("offers")->elements) {
    EXPECT_EQ(offer.find("engine")->string, "megatron_ddp");
    const bool amd = offer.find("cluster")->string == "mi325x";
    EXPECT_EQ(offer.find("on_defaults")->boolean, amd);
    EXPECT_FALSE(defaults && !amd);
    defaults = amd;
  }
  EXPECT_TRUE(defaults);
}

TEST(Size, ExitsWithOneWhenNothingIsInTime) {
  const Outcome outcome = shardwise({"size", "--model", "llama-3.1-405b", "--tokens", "15e12",
                                     "--days", "1", "--cluster", "dgx-h100", "--max-gpus", "64"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, StartsWith("Nothing trains 15.0 T tokens in "));
  EXPECT_THAT(outcome.out, HasSubstr("too late at peak speed"));
}

TEST(Size, RefusesAnUnknownClusterWithTheNearest) {
  const Outcome outcome = shardwise(
      {"size", "--model", "gpt2", "--tokens", "1e12", "--days", "30", "--cluster", "dgx-h10"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("did you mean dgx-h100, "));
}

}  // namespace
}  // namespace shardwise::cli
