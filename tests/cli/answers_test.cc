// Questions of one line: does it fit, is this MFU right; and names of the Hub.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/table.h"
#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
}

JsonValue json_of(std::vector<std::string> arguments, int exit_code = 0) {
  arguments.emplace_back("--json");
  const Outcome outcome = shardwise(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  const Result<JsonValue> json = parse_json(outcome.out, "stdout");
  EXPECT_TRUE(json.ok()) << outcome.out;
  return json ? *json : JsonValue();
}

constexpr const char* kConfig =
    R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8,
 "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 4096,
 "max_position_embeddings": 2048, "time_step_limit": [0.0, Infinity], "z_loss": NaN})";

// The numbers of `estimate` for the same layout, under the names that people know them by.
TEST(Fits, SaysTheLineOfMemoryBelowItsVerdict) {
  const std::vector<std::string> question = {
      "fits", "meta-llama/Llama-3.1-8B", "--gpu", "h100", "--gpus", "8"};
  const Outcome outcome = shardwise(question);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Fits 79.2 GiB: nvidia-smi "));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\nallocated .* \\+ slack .* \\+ outside .* = "
                                                  "nvidia-smi .*\nmust fit: "));
  EXPECT_THAT(outcome.out, HasSubstr("assumed: h100 is h100-sxm"));
  expect_narrow(outcome.out);

  const JsonValue fits = json_of(question);
  const JsonValue estimate =
      json_of({"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--gpus", "8",
               "--engine", "fsdp2", "--zero-stage", "3"});
  EXPECT_EQ(fits.find("nvidia_smi_bytes")->integer,
            estimate.find("verdict")->find("point_bytes")->integer);
  EXPECT_LT(fits.find("allocated_bytes")->integer, fits.find("reserved_bytes")->integer);
  EXPECT_LT(fits.find("reserved_bytes")->integer, fits.find("nvidia_smi_bytes")->integer);
  EXPECT_EQ(fits.find("change")->kind, JsonValue::Kind::null);
}

TEST(Fits, SaysWhatToChangeFirst) {
  const Outcome outcome = shardwise({"fits", "llama-3.1-8b", "--gpu", "h100", "--gpus", "8",
                                     "--sequence-length", "32768", "--micro-batch-size", "2"});
  ASSERT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("Does not fit 79.2 GiB: nvidia-smi "));
  EXPECT_THAT(outcome.out, HasSubstr("\nChange first: --"));
  expect_narrow(outcome.out);
}

// 405 B parameters in 16 bytes are 6.5 TB: no change of a layout helps on one node.
TEST(Fits, SaysHowManyGpusWhereNoLayoutHelps) {
  const JsonValue fits =
      json_of({"fits", "llama-3.1-405b", "--gpu", "h100", "--gpus", "8", "--recompute", "full"}, 1);
  EXPECT_THAT(fits.find("change")->string,
              testing::ContainsRegex("^--gpus [0-9]+(, then --[^:]*)?: [0-9.]+ GiB, "));
}

TEST(Fits, RefusesAGpuWithoutACluster) {
  const Outcome outcome = shardwise({"fits", "gpt2", "--gpu", "mi250x"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--gpu: no cluster of the catalogue has mi250x"));
}

// As `hf download` leaves a repository: a snapshot of links to blobs, named by refs/main.
TEST(HubCache, HasModelsThatTheCatalogueDoesNotHave) {
  const test::Scratch scratch;
  namespace fs = std::filesystem;
  const fs::path folder = scratch.folder() / "hub" / "models--somebody--small-llama";
  fs::create_directories(folder / "snapshots" / "0a1b");
  fs::create_directories(folder / "refs");
  fs::create_directories(folder / "blobs");
  scratch.write_bytes("hub/models--somebody--small-llama/blobs/77", kConfig);
  scratch.write_bytes("hub/models--somebody--small-llama/refs/main", "0a1b");
  fs::create_symlink("../../blobs/77", folder / "snapshots" / "0a1b" / "config.json");
  const std::vector<std::string> question = {"fits", "somebody/small-llama", "--gpu", "h100"};

  ::setenv("HF_HOME", scratch.folder().c_str(), 1);
  const Outcome found = shardwise(question);
  ::setenv("HF_HOME", scratch.path("elsewhere").c_str(), 1);
  const Outcome missing = shardwise(question);
  ::unsetenv("HF_HOME");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("somebody/small-llama, 5.90 M parameters"));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("\"somebody/small-llama\" is not in the catalogue of models, "
                                     "nor is its config.json in the Hugging Face cache"));
}

TEST(FoundFiles, HaveInfinityAndNaNWhereNobodyReadsThem) {
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes("config.json", kConfig);
  const Outcome outcome = shardwise({"estimate", "--model", file, "--cluster", "dgx-h100"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("5.90 M parameters"));
}

TEST(FoundFiles, MayBeCalledAsTheyLike) {
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes("small.txt", kConfig);
  EXPECT_EQ(shardwise({"estimate", "--model", file, "--cluster", "dgx-h100"}).exit_code, 0);
  const std::string yaml = scratch.write_bytes("cluster.yaml", "nodes: 4\n");
  const Outcome outcome = shardwise({"estimate", "--model", "gpt2", "--cluster", yaml});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("cluster.yaml is there, but is no cluster file"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("not in the catalogue")));
}

// pytorch/torchtitan: 6,785 tokens/s of an H100 are 39.73 % there.
TEST(Mfu, SaysWhoseConventionAPrintedNumberIs) {
  const std::vector<std::string> question = {"mfu",
                                             "--model",
                                             "llama-3.1-8b",
                                             "--gpu",
                                             "h100",
                                             "--gpus",
                                             "8",
                                             "--tokens-per-second",
                                             "54280",
                                             "--sequence-length",
                                             "8192",
                                             "--printed",
                                             "39.73%"};
  const Outcome outcome = shardwise(question);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("MFU 35.3 % of the dense bf16 peak, 39.7 % with "));
  EXPECT_THAT(outcome.out, HasSubstr("39.7 % follows\n  torchtitan, 39.7 %\n"));
  expect_narrow(outcome.out);
  const JsonValue json = json_of(question);
  EXPECT_EQ(json.find("schema")->string, "shardwise.mfu/1");
  EXPECT_EQ(json.find("printed")->find("follows")->elements.at(0).find("id")->string, "torchtitan");
  EXPECT_EQ(json.find("conventions")->elements.size(), 10U);
}

// Two plans are a diff of fields, with the price of each.
TEST(Compare, PricesTheFieldsInWhichTwoPlansDiffer) {
  const test::Scratch scratch;
  const auto plan = [&](const char* name, std::vector<std::string> more) {
    std::vector<std::string> words = {"plan",
                                      "--model",
                                      "gpt2",
                                      "--cluster",
                                      "dgx-h100",
                                      "--gpus",
                                      "8",
                                      "--global-batch-size",
                                      "16",
                                      "--engine",
                                      "fsdp2",
                                      "-o",
                                      scratch.path(name)};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = shardwise(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return scratch.path(name);
  };
  const std::string a = plan("a.json", {"--lock", "zero_stage=3", "--lock", "recompute=none"});
  const std::string b = plan("b.json", {"--lock", "zero_stage=3", "--lock", "recompute=full"});
  const Outcome outcome = shardwise({"compare", a, b});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\nrecompute +none +full +[+][0-9.]+ [mu]s"));
  EXPECT_THAT(outcome.out, HasSubstr("\nB - A "));
  expect_narrow(outcome.out);
  EXPECT_EQ(json_of({"compare", a, b}).find("schema")->string, "shardwise.plan_differences/1");
  EXPECT_EQ(shardwise({"compare", a, b, "--tolerance", "0"}).exit_code, 1);
  EXPECT_THAT(shardwise({"compare", a, a}).out, HasSubstr("the plans have the same fields"));

  const Outcome mixed = shardwise({"compare", a, "tests/golden/profiler_trace.json"});
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_THAT(mixed.err, HasSubstr("a plan, and tests/golden/profiler_trace.json is none"));
}

}  // namespace
}  // namespace shardwise::cli
