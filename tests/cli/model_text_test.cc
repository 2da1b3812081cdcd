// What commands say of the model itself: its parameters, and what its file does not say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/spec/json/reader.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Text and JSON of one command.
struct Said {
  std::string text;
  JsonValue json;
};

Said said(std::vector<std::string> arguments) {
  Said result;
  result.text = shardwise(arguments).out;
  arguments.emplace_back("--json");
  const Outcome outcome = shardwise(arguments);
  const Result<JsonValue> json = parse_json(outcome.out, "stdout");
  EXPECT_TRUE(json.ok()) << outcome.out << outcome.err;
  if (json) result.json = *json;
  return result;
}

void expect_counts(const Said& said, std::int64_t parameters, std::int64_t active) {
  ASSERT_NE(said.json.find("parameters"), nullptr);
  EXPECT_EQ(said.json.find("parameters")->integer, parameters);
  EXPECT_EQ(said.json.find("active_parameters")->integer, active);
}

// Published: 46.7 B and 12.9 B (mistral.ai/news/mixtral-of-experts), 671 B and 37 B (DeepSeek-V3,
// arXiv:2412.19437), 235 B and 22 B (Qwen3-235B-A22B's card).
TEST(ModelText, EveryVerbSaysTotalAndActiveParameters) {
  const std::string mixtral = "46.7 B parameters, 12.9 B active";
  const Said estimated =
      said({"estimate", "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--gpus", "64"});
  EXPECT_THAT(estimated.text, HasSubstr(mixtral));
  expect_counts(estimated, 46'702'792'704, 12'879'925'248);
  const Said simulated = said(
      {"simulate", "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--gpus", "8", "--tp", "8"});
  EXPECT_THAT(simulated.text, HasSubstr(mixtral));
  expect_counts(simulated, 46'702'792'704, 12'879'925'248);
  const Said planned = said({"plan", "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--gpus",
                             "32", "--global-batch-size", "64"});
  EXPECT_THAT(planned.text, HasSubstr(mixtral));
  expect_counts(planned, 46'702'792'704, 12'879'925'248);
  const Said deepseek =
      said({"estimate", "--model", "deepseek-v3", "--cluster", "dgx-h100", "--gpus", "64"});
  EXPECT_THAT(deepseek.text, HasSubstr("671 B parameters, 37.6 B active"));
  const Said qwen =
      said({"estimate", "--model", "qwen3-235b-a22b", "--cluster", "dgx-h100", "--gpus", "64"});
  EXPECT_THAT(qwen.text, HasSubstr("235 B parameters, 22.2 B active"));
  const Said dense = said({"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100"});
  EXPECT_THAT(dense.text, HasSubstr("8.03 B parameters"));
  EXPECT_THAT(dense.text, Not(HasSubstr("active")));
}

TEST(ModelText, SizeSaysWhatItBuysFor) {
  const Said sized = said({"size", "--model", "mixtral-8x7b", "--tokens", "1e9", "--days", "30",
                           "--cluster", "dgx-h100", "--max-gpus", "32"});
  EXPECT_THAT(sized.text, HasSubstr("46.7 B parameters, 12.9 B active"));
  expect_counts(sized, 46'702'792'704, 12'879'925'248);
}

TEST(ModelText, AbsentKeysArePrinted) {
  const std::string path = testing::TempDir() + "absent_keys.json";
  std::ofstream(path) << R"({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
      "intermediate_size": 4096, "num_attention_heads": 8, "vocab_size": 32000})";
  for (const char* verb : {"estimate", "simulate", "plan"}) {
    const Outcome outcome = shardwise({verb, "--model", path, "--cluster", "dgx-h100"});
    EXPECT_THAT(outcome.out, HasSubstr("assumed: keys that the configuration of absent_keys"))
        << verb << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("num_key_value_heads derived")) << verb;
  }
  const Outcome sized = shardwise(
      {"size", "--model", path, "--cluster", "dgx-h100", "--tokens", "1e9", "--days", "30"});
  EXPECT_THAT(sized.out, HasSubstr("\nkeys that the configuration of absent_keys")) << sized.err;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace shardwise::cli
