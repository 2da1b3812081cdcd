#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

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

}  // namespace
}  // namespace shardwise::cli
