// What `plan` says beside its ranking: what it proved, and the nearest layout where nothing fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

// What does not fit can be sent as a page too.
TEST(PlannedFiles, WriteTheNearestWhenNothingFits) {
  const std::string file = testing::TempDir() + "nearest_plan.json";
  const Outcome outcome =
      shardwise({"plan", "--engine", "megatron_ddp", "--model", "llama-3.1-405b", "--cluster",
                 "dgx-h100", "--gpus", "8", "-o", file});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("the layout above: it does not fit"));
  const std::string page = testing::TempDir() + "nearest_plan.html";
  const Outcome again = shardwise({"report", file, "--top", "0", "-o", page});
  EXPECT_EQ(again.exit_code, 1) << again.err;
  EXPECT_THAT(again.out, HasSubstr("Does not fit"));
}

TEST(PlanProof, EndsWithWhatIsProved) {
  const std::vector<std::string> ask = {"plan",      "--engine", "megatron_ddp", "--model", "gpt2",
                                        "--cluster", "dgx-h100", "--gpus",       "8"};
  const Outcome screen = shardwise(ask);
  EXPECT_THAT(screen.out,
              testing::ContainsRegex("proved: no layout that fits is more than [0-9.]+ % "
                                     "faster; [0-9]+ of [0-9,]+ simulated[^\n]*\n$"));
  std::vector<std::string> json = ask;
  json.emplace_back("--json");
  const nlohmann::json answer = nlohmann::json::parse(shardwise(json).out);
  const nlohmann::json& proved = answer.at("proved");
  EXPECT_EQ(proved.at("step_s"), answer.at("best").at(0).at("simulated_step_time_s"));
  EXPECT_GE(proved.at("faster_at_most").get<double>(), 0);
  EXPECT_GE(proved.at("layouts").get<int>(), proved.at("simulated").get<int>());
}

}  // namespace
}  // namespace shardwise::cli
