#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kRows = "tests/golden/measurements_made_up.jsonl";

TEST(Score, SimulatesStepsAndKeepsMemory) {
  const auto closed = nlohmann::json::parse(shardwise({"score", kRows, "--json"}).out)["rows"];
  const Outcome outcome = shardwise({"score", kRows, "--json", "--simulate"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto simulated = nlohmann::json::parse(outcome.out)["rows"];
  ASSERT_EQ(simulated.size(), closed.size());
  for (std::size_t i = 0; i < closed.size(); ++i) {
    const double ratio =
        simulated[i]["predicted"].get<double>() / closed[i]["predicted"].get<double>();
    if (closed[i]["quantity"] == "memory") {
      EXPECT_EQ(ratio, 1) << closed[i]["id"];
    } else {
      EXPECT_NE(ratio, 1) << closed[i]["id"];
      EXPECT_NEAR(ratio, 1, 0.05) << closed[i]["id"];
    }
  }
}

TEST(Score, ExplainsTheClosedFormOnly) {
  const Outcome outcome = shardwise({"score", kRows, "--simulate", "--explain", "made-up/fsdp2"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--explain"));
}

// The rows that anyone can score: all are understood, and no source counts for much more than
// others.
TEST(Score, PredictsEveryRowOfTheExamples) {
  const Outcome outcome = shardwise({"score", "examples/public.jsonl", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto score = nlohmann::json::parse(outcome.out);
  std::set<std::string> predicted;
  for (const auto& row : score["rows"]) predicted.insert(row["id"]);
  EXPECT_EQ(predicted.size(), 65U);
  for (const auto& row : score["skipped"]) EXPECT_TRUE(predicted.contains(row["id"])) << row;
  EXPECT_GE(score["overall"]["memory"]["sources"], 6);
  EXPECT_GE(score["overall"]["time"]["sources"], 9);
  for (const auto& source : score["sources"]) EXPECT_LE(source["n"], 6) << source;
}

// Both used to end with 0 and a table of nothing.
TEST(Score, RefusesFilesWithoutARow) {
  const test::Scratch scratch;
  for (const std::string text : {"", "\n \n", "\xEF\xBB\xBF"}) {
    const std::string file = scratch.write_bytes("rows.jsonl", text);
    const Outcome outcome = shardwise({"score", file});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              file + ": no row\n    one JSON object a line\n1 problem, nothing was run\n");
  }
  const std::string null = scratch.write_bytes("null.jsonl", "null\n");
  const Outcome outcome = shardwise({"score", null});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(null + ":1:1: expected an object, found null"));
}

TEST(Score, ExamplesNameWhoPublishedThem) {
  std::ifstream file("examples/public.jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    const auto& source = row["source"];
    EXPECT_FALSE(source.value("repo", "").empty()) << row["id"];
    // A pull request has a number in place of a commit.
    const std::string path = source.value("path", "");
    EXPECT_TRUE(path.starts_with("pull/") || !source.value("commit", "").empty()) << row["id"];
    EXPECT_FALSE(path.empty()) << row["id"];
  }
  EXPECT_EQ(rows, 65);
}

}  // namespace
}  // namespace shardwise::cli
